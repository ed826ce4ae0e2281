-- +goose Up
-- What of calls and conversations is in the search in transcripts.
ALTER TABLE calls ADD COLUMN indexed BOOLEAN NOT NULL DEFAULT FALSE;
-- how many of its messages are in the index
ALTER TABLE conversations ADD COLUMN indexed BIGINT NOT NULL DEFAULT 0;
-- This engine only.
-- The search in transcripts: the tokens of a call's and a conversation's words, and what is not there yet. The tokens are kept out of the
-- line, so that the rows that a common word finds are on few pages.
CREATE TABLE call_tokens (
  id BIGINT PRIMARY KEY REFERENCES calls (id) ON DELETE CASCADE,
  tokens tsvector NOT NULL
);
ALTER TABLE call_tokens ALTER COLUMN tokens SET STORAGE EXTERNAL;
ALTER TABLE call_tokens SET (toast_tuple_target = 128);
CREATE INDEX call_tokens_found ON call_tokens USING gin (tokens);
CREATE TABLE conversation_tokens (
  id BIGINT PRIMARY KEY REFERENCES conversations (seq) ON DELETE CASCADE,
  tokens tsvector NOT NULL
);
ALTER TABLE conversation_tokens ALTER COLUMN tokens SET STORAGE EXTERNAL;
ALTER TABLE conversation_tokens SET (toast_tuple_target = 128);
CREATE INDEX conversation_tokens_found ON conversation_tokens USING gin (tokens);

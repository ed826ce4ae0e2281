-- +goose Up
-- What of calls and conversations is in the search in transcripts.
ALTER TABLE calls ADD COLUMN indexed BOOLEAN NOT NULL DEFAULT FALSE;
-- how many of its messages are in the index
ALTER TABLE conversations ADD COLUMN indexed BIGINT NOT NULL DEFAULT 0;
-- This engine only.
-- The search in transcripts: the tokens of a call's and a conversation's words, and what is not there yet.
CREATE VIRTUAL TABLE
  call_tokens USING fts5(tokens, content='', contentless_delete=1, detail=none, tokenize="ascii tokenchars '_'");
CREATE VIRTUAL TABLE
  conversation_tokens USING fts5(tokens, content='', contentless_delete=1, detail=none, tokenize="ascii tokenchars '_'");
-- +goose StatementBegin
CREATE TRIGGER calls_gone AFTER DELETE ON calls BEGIN DELETE FROM call_tokens WHERE rowid = old.id; END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER conversations_gone AFTER DELETE ON conversations BEGIN DELETE FROM conversation_tokens WHERE rowid = old.seq; END;
-- +goose StatementEnd

-- +goose Up
-- How often an answer to a customer's message was begun.
ALTER TABLE messages ADD COLUMN attempts BIGINT NOT NULL DEFAULT 0;
-- How often the end of a conversation was tried.
ALTER TABLE conversations ADD COLUMN end_attempts BIGINT NOT NULL DEFAULT 0;

-- The tools that ran for a message that has no reply yet: the next attempt is told their results, and does not run them again.
CREATE TABLE message_calls (
  message_id BIGINT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
  n BIGINT NOT NULL, -- in the order of the turn
  name TEXT NOT NULL,
  arguments TEXT NOT NULL,
  result TEXT, -- NULL from its beginning until its end is known
  PRIMARY KEY (message_id, n)
);

-- Whether something was committed under an Idempotency-Key: such a one is never freed.
ALTER TABLE idempotency_keys ADD COLUMN touched BOOLEAN NOT NULL DEFAULT FALSE;

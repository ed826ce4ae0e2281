-- +goose Up
-- Who has a call: its assistant, which holds a line, a telephone, the voicemail, the queue for a line; and since when, where that is not the answer.
ALTER TABLE calls ADD COLUMN taken_by TEXT NOT NULL DEFAULT 'assistant';
ALTER TABLE calls ADD COLUMN taken_at BIGINT NOT NULL DEFAULT 0;

-- +goose Up
-- What of an assistant is changed and not live yet, and the conversations that are held with it.
CREATE TABLE assistant_drafts (
  assistant_id BIGINT PRIMARY KEY REFERENCES assistants (id) ON DELETE CASCADE,
  user_id BIGINT NOT NULL,
  author TEXT NOT NULL,
  base BIGINT NOT NULL, -- when the live assistant was last changed before the draft was begun
  sealed_changes BLOB NOT NULL, -- JSON of the changed fields, encrypted
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
ALTER TABLE conversations ADD COLUMN draft BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Up
-- Voices in a user's account at a vendor, such as cloned ones. Assistants name them by their number: it is never used again.
CREATE TABLE account_voices (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  vendor TEXT NOT NULL,
  code TEXT NOT NULL,
  name TEXT NOT NULL,
  languages TEXT NOT NULL,
  gender TEXT NOT NULL,
  accent TEXT NOT NULL,
  age TEXT NOT NULL,
  gone BOOLEAN NOT NULL,
  UNIQUE (user_id, vendor, code)
);

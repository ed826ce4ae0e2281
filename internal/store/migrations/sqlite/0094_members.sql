-- +goose Up
-- People who work in another's account, and those who were asked to.
CREATE TABLE members (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  email TEXT NOT NULL UNIQUE,
  password_hash TEXT NOT NULL,
  role TEXT NOT NULL,
  language TEXT NOT NULL,
  timezone TEXT NOT NULL,
  disabled_at BIGINT NOT NULL, -- 0: may sign in
  last_seen_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX members_user ON members (user_id, id);
CREATE TABLE invitations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  email TEXT NOT NULL,
  name TEXT NOT NULL,
  role TEXT NOT NULL,
  hash BLOB NOT NULL,
  expires_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX invitations_email ON invitations (user_id, email);
CREATE INDEX invitations_expired ON invitations (expires_at);
-- Whose a credential is (0: the account's owner's), and the role that it is limited to ('': its holder's).
ALTER TABLE keys ADD COLUMN member_id BIGINT NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN scope TEXT NOT NULL DEFAULT '';

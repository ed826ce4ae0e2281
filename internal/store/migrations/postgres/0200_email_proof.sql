-- +goose Up
-- When somebody has shown that an e-mail address is theirs (0: not yet; 1: they have had it since before anybody was asked).
ALTER TABLE users ADD COLUMN email_proven_at BIGINT NOT NULL DEFAULT 1;
ALTER TABLE members ADD COLUMN email_proven_at BIGINT NOT NULL DEFAULT 1;
-- The link of an invitation that is sent by e-mail proves the address; the one that is shown to whoever invites does not.
ALTER TABLE invitations ADD COLUMN mail_hash BYTEA;
-- How many e-mails an account caused and an address got in a day.
CREATE TABLE mail_counts (
  name TEXT PRIMARY KEY, -- user:ID, or to:HASH of the address
  day BIGINT NOT NULL,
  n BIGINT NOT NULL
);
CREATE INDEX mail_counts_day ON mail_counts (day);

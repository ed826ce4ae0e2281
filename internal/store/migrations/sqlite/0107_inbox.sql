-- +goose Up
-- Since when a conversation needs a person (0: it does not), and who has taken it: NULL nobody, 0 the account's owner, else a member.
ALTER TABLE conversations ADD COLUMN waits_since BIGINT NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD COLUMN assignee BIGINT;

-- +goose Up
-- What analytics are made of: counts of a user's six hours, packed (internal/store/activity.go).
CREATE TABLE activity (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  span BIGINT NOT NULL, -- six hours, since 1970
  pack BYTEA NOT NULL, -- the six hours as a whole
  quarters BYTEA NOT NULL, -- each quarter of an hour: for days that begin within the six hours
  PRIMARY KEY (user_id, span)
);
-- Up to which id the rows are not counted yet that were there before.
CREATE TABLE activity_left (
  name TEXT PRIMARY KEY,
  below BIGINT NOT NULL
);
INSERT INTO activity_left SELECT 'messages', coalesce(max(id), 0) FROM messages;
INSERT INTO activity_left SELECT 'conversations', coalesce(max(seq), 0) FROM conversations;
INSERT INTO activity_left SELECT 'ledger', coalesce(max(id), 0) FROM ledger;
-- What lists of calls are filtered by, and whether a call is counted: 1 its end, 2 its report too.
ALTER TABLE calls ADD COLUMN counted BIGINT NOT NULL DEFAULT 0;
ALTER TABLE calls ADD COLUMN answerer TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN slowest_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE calls ADD COLUMN sentiment TEXT NOT NULL DEFAULT '';
ALTER TABLE calls ADD COLUMN outcome TEXT NOT NULL DEFAULT '';

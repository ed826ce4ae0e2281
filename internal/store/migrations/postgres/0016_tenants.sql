-- +goose Up
-- Those of a conversation's variables that its visitor wrote, with spaces between. '*' says all: of what was written before this was noted, and
-- by nodes of a former version, nobody knows better.
ALTER TABLE conversations ADD COLUMN visitor_names TEXT NOT NULL DEFAULT '*';
-- The variables of an assistant, encrypted. The column variables is left to nodes of a former version.
ALTER TABLE assistants ADD COLUMN sealed_variables BYTEA;
-- When an account made itself; 0 once it has had a credit, and for those that the operator made.
ALTER TABLE users ADD COLUMN signed_up_at BIGINT NOT NULL DEFAULT 0;
-- What an account has begun in a day, of what is counted by the day.
CREATE TABLE day_counts (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  day BIGINT NOT NULL,
  n BIGINT NOT NULL,
  PRIMARY KEY (user_id, name)
);

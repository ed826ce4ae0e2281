-- +goose Up
-- How many bytes the assistants, tests and tools of an account take, as Tx.weigh counts them. An account without a row is
-- counted when it next stores something.
CREATE TABLE stored_bytes (
  user_id BIGINT PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
  bytes BIGINT NOT NULL,
  counted_at BIGINT NOT NULL -- when its rows were last counted
);
CREATE INDEX stored_bytes_counted ON stored_bytes (counted_at);

-- +goose Up
-- Filters of lists that an account has saved under a name.
CREATE TABLE saved_filters (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  page TEXT NOT NULL,
  name TEXT NOT NULL,
  query TEXT NOT NULL, -- as in the page's address
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX saved_filters_name ON saved_filters (user_id, page, name);

-- +goose Up
-- Folders and labels by which an account orders its assistants.
CREATE TABLE assistant_groups (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  kind TEXT NOT NULL, -- folder or label
  name TEXT NOT NULL,
  color TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX assistant_groups_name ON assistant_groups (user_id, kind, name);
-- Of the folders an assistant is in one at most.
CREATE TABLE assistant_group_members (
  assistant_id BIGINT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
  group_id BIGINT NOT NULL REFERENCES assistant_groups (id) ON DELETE CASCADE,
  PRIMARY KEY (assistant_id, group_id)
);
CREATE INDEX assistant_group_members_group ON assistant_group_members (group_id);

-- +goose Up
-- How often an account's calls and conversations were deleted, or changed an hour after they were made in what lists ask for: what is
-- remembered of how many there are holds until then.
CREATE TABLE list_changes (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  list TEXT NOT NULL, -- the table
  changes BIGINT NOT NULL,
  PRIMARY KEY (user_id, list)
) WITHOUT ROWID;

-- This engine only.
-- +goose StatementBegin
CREATE TRIGGER calls_deleted AFTER DELETE ON calls BEGIN
  INSERT INTO list_changes SELECT id, 'calls', 1 FROM users WHERE id = old.user_id
    ON CONFLICT (user_id, list) DO UPDATE SET changes = changes + 1;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER conversations_deleted AFTER DELETE ON conversations BEGIN
  INSERT INTO list_changes SELECT id, 'conversations', 1 FROM users WHERE id = old.user_id
    ON CONFLICT (user_id, list) DO UPDATE SET changes = changes + 1;
END;
-- +goose StatementEnd

-- Fifty minutes, as clocks may be apart: only what is older than an hour is remembered.
-- +goose StatementBegin
CREATE TRIGGER calls_changed AFTER UPDATE OF user_id, status, type, customer_phone, assistant_id, campaign_id, number_id, ended_reason,
  answerer, sentiment, outcome, slowest_ms, test, created_at ON calls WHEN old.created_at < (unixepoch() - 3000) * 1000000 BEGIN
  INSERT INTO list_changes SELECT id, 'calls', 1 FROM users WHERE id = old.user_id
    ON CONFLICT (user_id, list) DO UPDATE SET changes = changes + 1;
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER conversations_changed AFTER UPDATE OF user_id, type, assistant_id, customer_phone, external_identifier, created_at
  ON conversations WHEN old.created_at < (unixepoch() - 3000) * 1000000 BEGIN
  INSERT INTO list_changes SELECT id, 'conversations', 1 FROM users WHERE id = old.user_id
    ON CONFLICT (user_id, list) DO UPDATE SET changes = changes + 1;
END;
-- +goose StatementEnd

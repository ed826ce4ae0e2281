-- +goose Up
-- When an account's calls or conversations were last deleted, or old ones changed in a column that lists are narrowed by. As long as that
-- stays the same, lists remember how many rows older than an hour they have. Old is fifty minutes: ten are left for slow transactions and
-- for clocks that differ. The value is a time in microseconds, or the former value and one, so that it never comes back.
CREATE TABLE list_changes (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  list TEXT NOT NULL, -- the table
  changes BIGINT NOT NULL,
  PRIMARY KEY (user_id, list)
) WITHOUT ROWID;

-- This engine only.
-- +goose StatementBegin
CREATE TRIGGER calls_deleted AFTER DELETE ON calls BEGIN
  INSERT INTO list_changes SELECT id, 'calls', unixepoch() * 1000000 FROM users WHERE id = old.user_id
    ON CONFLICT (user_id, list) DO UPDATE SET changes = max(changes + 1, excluded.changes);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER conversations_deleted AFTER DELETE ON conversations BEGIN
  INSERT INTO list_changes SELECT id, 'conversations', unixepoch() * 1000000 FROM users WHERE id = old.user_id
    ON CONFLICT (user_id, list) DO UPDATE SET changes = max(changes + 1, excluded.changes);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER calls_changed AFTER UPDATE OF
    user_id, status, type, customer_phone, assistant_id, campaign_id, number_id, ended_reason, answerer, sentiment,
    outcome, slowest_ms, test, created_at
  ON calls WHEN old.created_at < (unixepoch() - 3000) * 1000000 AND (
    old.user_id, old.status, old.type, old.customer_phone, old.assistant_id, old.campaign_id, old.number_id,
    old.ended_reason, old.answerer, old.sentiment, old.outcome, old.slowest_ms, old.test, old.created_at
  ) IS NOT (
    new.user_id, new.status, new.type, new.customer_phone, new.assistant_id, new.campaign_id, new.number_id,
    new.ended_reason, new.answerer, new.sentiment, new.outcome, new.slowest_ms, new.test, new.created_at
  ) BEGIN
  INSERT INTO list_changes SELECT id, 'calls', unixepoch() * 1000000 FROM users WHERE id = old.user_id
    ON CONFLICT (user_id, list) DO UPDATE SET changes = max(changes + 1, excluded.changes);
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER conversations_changed AFTER UPDATE OF
    user_id, type, assistant_id, customer_phone, external_identifier, created_at
  ON conversations WHEN old.created_at < (unixepoch() - 3000) * 1000000 AND (
    old.user_id, old.type, old.assistant_id, old.customer_phone, old.external_identifier, old.created_at
  ) IS NOT (
    new.user_id, new.type, new.assistant_id, new.customer_phone, new.external_identifier, new.created_at
  ) BEGIN
  INSERT INTO list_changes SELECT id, 'conversations', unixepoch() * 1000000 FROM users WHERE id = old.user_id
    ON CONFLICT (user_id, list) DO UPDATE SET changes = max(changes + 1, excluded.changes);
END;
-- +goose StatementEnd

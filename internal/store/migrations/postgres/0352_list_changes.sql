-- +goose Up
-- How often an account's calls and conversations were deleted, or changed an hour after they were made in what lists ask for: what is
-- remembered of how many there are holds until then.
CREATE TABLE list_changes (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  list TEXT NOT NULL, -- the table
  changes BIGINT NOT NULL,
  PRIMARY KEY (user_id, list)
);

-- This engine only.
-- +goose StatementBegin
CREATE FUNCTION list_deleted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO list_changes SELECT id, TG_TABLE_NAME, 1 FROM users WHERE id IN (SELECT user_id FROM gone) ORDER BY id
    ON CONFLICT (user_id, list) DO UPDATE SET changes = list_changes.changes + 1;
  RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION list_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO list_changes SELECT id, TG_TABLE_NAME, 1 FROM users WHERE id = OLD.user_id
    ON CONFLICT (user_id, list) DO UPDATE SET changes = list_changes.changes + 1;
  RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER calls_deleted AFTER DELETE ON calls REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION list_deleted();
CREATE TRIGGER conversations_deleted AFTER DELETE ON conversations REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION list_deleted();

-- Fifty minutes, as clocks may be apart: only what is older than an hour is remembered.
CREATE TRIGGER calls_changed AFTER UPDATE OF user_id, status, type, customer_phone, assistant_id, campaign_id, number_id, ended_reason,
  answerer, sentiment, outcome, slowest_ms, test, created_at ON calls FOR EACH ROW
  WHEN (OLD.created_at < (extract(epoch FROM clock_timestamp()) - 3000) * 1000000) EXECUTE FUNCTION list_changed();
CREATE TRIGGER conversations_changed AFTER UPDATE OF user_id, type, assistant_id, customer_phone, external_identifier, created_at
  ON conversations FOR EACH ROW
  WHEN (OLD.created_at < (extract(epoch FROM clock_timestamp()) - 3000) * 1000000) EXECUTE FUNCTION list_changed();

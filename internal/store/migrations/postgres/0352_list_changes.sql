-- +goose Up
-- When an account's calls or conversations were last deleted, or old ones changed in a column that lists are narrowed by. As long as that
-- stays the same, lists remember how many rows older than an hour they have. Old is fifty minutes: ten are left for slow transactions and
-- for clocks that differ. The value is a time in microseconds, or the former value and one, so that it never comes back.
CREATE TABLE list_changes (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  list TEXT NOT NULL, -- the table
  changes BIGINT NOT NULL,
  PRIMARY KEY (user_id, list)
);

-- This engine only.
-- +goose StatementBegin
CREATE FUNCTION list_deleted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO list_changes SELECT id, TG_TABLE_NAME, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM users
    WHERE id IN (SELECT user_id FROM gone) ORDER BY id
    ON CONFLICT (user_id, list) DO UPDATE SET changes = greatest(list_changes.changes + 1, excluded.changes);
  RETURN NULL;
END $$;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE FUNCTION list_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO list_changes SELECT id, TG_TABLE_NAME, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint FROM users
    WHERE id = OLD.user_id
    ON CONFLICT (user_id, list) DO UPDATE SET changes = greatest(list_changes.changes + 1, excluded.changes);
  RETURN NULL;
END $$;
-- +goose StatementEnd

CREATE TRIGGER calls_deleted AFTER DELETE ON calls REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION list_deleted();
CREATE TRIGGER conversations_deleted AFTER DELETE ON conversations REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION list_deleted();

CREATE TRIGGER calls_changed AFTER UPDATE OF
    user_id, status, type, customer_phone, assistant_id, campaign_id, number_id, ended_reason, answerer, sentiment,
    outcome, slowest_ms, test, created_at
  ON calls FOR EACH ROW WHEN (OLD.created_at < (extract(epoch FROM clock_timestamp()) - 3000) * 1000000 AND (
    OLD.user_id, OLD.status, OLD.type, OLD.customer_phone, OLD.assistant_id, OLD.campaign_id, OLD.number_id,
    OLD.ended_reason, OLD.answerer, OLD.sentiment, OLD.outcome, OLD.slowest_ms, OLD.test, OLD.created_at
  ) IS DISTINCT FROM (
    NEW.user_id, NEW.status, NEW.type, NEW.customer_phone, NEW.assistant_id, NEW.campaign_id, NEW.number_id,
    NEW.ended_reason, NEW.answerer, NEW.sentiment, NEW.outcome, NEW.slowest_ms, NEW.test, NEW.created_at
  )) EXECUTE FUNCTION list_changed();

CREATE TRIGGER conversations_changed AFTER UPDATE OF
    user_id, type, assistant_id, customer_phone, external_identifier, created_at
  ON conversations FOR EACH ROW WHEN (OLD.created_at < (extract(epoch FROM clock_timestamp()) - 3000) * 1000000 AND (
    OLD.user_id, OLD.type, OLD.assistant_id, OLD.customer_phone, OLD.external_identifier, OLD.created_at
  ) IS DISTINCT FROM (
    NEW.user_id, NEW.type, NEW.assistant_id, NEW.customer_phone, NEW.external_identifier, NEW.created_at
  )) EXECUTE FUNCTION list_changed();

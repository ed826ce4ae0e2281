-- +goose Up
-- Alerts: rules about the figures of an account, and how each stands.
CREATE TABLE alerts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  kind TEXT NOT NULL,
  threshold DOUBLE PRECISION NOT NULL,
  assistant_id BIGINT REFERENCES assistants (id) ON DELETE CASCADE,
  channel TEXT,
  window_minutes BIGINT NOT NULL,
  min_calls BIGINT NOT NULL,
  hours_start TEXT, -- HH:MM
  hours_end TEXT,
  days TEXT NOT NULL,
  email BOOLEAN NOT NULL,
  webhook BOOLEAN NOT NULL,
  active BOOLEAN NOT NULL,
  raised_at BIGINT NOT NULL, -- 0: it is not raised
  last_raised_at BIGINT NOT NULL,
  resolved_at BIGINT NOT NULL,
  value DOUBLE PRECISION,
  calls BIGINT NOT NULL,
  checked_at BIGINT NOT NULL,
  due_at BIGINT NOT NULL, -- when it is looked at next; 0: it is not active
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX alerts_user ON alerts (user_id, id);
CREATE INDEX alerts_assistant ON alerts (assistant_id) WHERE assistant_id IS NOT NULL;
CREATE INDEX alerts_due ON alerts (due_at) WHERE due_at > 0;

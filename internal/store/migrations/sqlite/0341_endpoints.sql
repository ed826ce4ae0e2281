-- +goose Up
-- Servers of an account's own, which think, speak or listen for its assistants.
CREATE TABLE endpoints (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  part TEXT NOT NULL,
  protocol TEXT NOT NULL,
  url TEXT NOT NULL,
  secrets BLOB NOT NULL, -- key and headers, sealed
  key_hint TEXT NOT NULL DEFAULT '',
  model TEXT NOT NULL DEFAULT '',
  voice TEXT NOT NULL DEFAULT '',
  wait_ms BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  UNIQUE (user_id, name)
);
ALTER TABLE assistants ADD COLUMN llm_endpoint_id BIGINT REFERENCES endpoints (id) ON DELETE SET NULL;
ALTER TABLE assistants ADD COLUMN voice_endpoint_id BIGINT REFERENCES endpoints (id) ON DELETE SET NULL;
ALTER TABLE assistants ADD COLUMN transcriber_endpoint_id BIGINT REFERENCES endpoints (id) ON DELETE SET NULL;

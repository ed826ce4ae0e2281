-- +goose Up
-- Lists of leads on their way into campaigns, and what was left out of them.
CREATE TABLE imports (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  campaign_id BIGINT NOT NULL,
  blob TEXT NOT NULL,
  size BIGINT NOT NULL,
  options TEXT NOT NULL,
  state TEXT NOT NULL,
  rows BIGINT NOT NULL DEFAULT 0,
  imported BIGINT NOT NULL DEFAULT 0,
  skipped BIGINT NOT NULL DEFAULT 0,
  read_bytes BIGINT NOT NULL DEFAULT 0,
  errors TEXT NOT NULL,
  failure TEXT NOT NULL DEFAULT '',
  owner TEXT NOT NULL DEFAULT '',
  lease_until BIGINT NOT NULL DEFAULT 0,
  tries BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  ended_at BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX imports_campaign ON imports (campaign_id, id);
CREATE INDEX imports_open ON imports (user_id) WHERE ended_at = 0;
CREATE INDEX imports_lease ON imports (lease_until) WHERE ended_at = 0;
CREATE INDEX imports_ended ON imports (ended_at) WHERE ended_at > 0;
CREATE TABLE import_rejects (
  import_id BIGINT NOT NULL REFERENCES imports (id) ON DELETE CASCADE,
  seq BIGINT NOT NULL, -- of the batch: its last row
  rows BIGINT NOT NULL,
  text TEXT NOT NULL, -- CSV lines
  PRIMARY KEY (import_id, seq)
);

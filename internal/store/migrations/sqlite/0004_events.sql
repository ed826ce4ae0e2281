-- +goose Up
-- What signs a user's webhooks. The one without an end is the present one; those that were replaced sign along until theirs.
CREATE TABLE webhook_secrets (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  sealed BLOB NOT NULL,
  ends_at BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL
);
CREATE INDEX webhook_secrets_user ON webhook_secrets (user_id, id);

-- Events on their way to endpoints. What is pending is tried when next_attempt_at has come; who tries it moves that on first, so that
-- it comes again when they die over it.
CREATE TABLE webhook_deliveries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  webhook_id TEXT NOT NULL UNIQUE,
  event TEXT NOT NULL,
  url TEXT NOT NULL,
  status TEXT NOT NULL,
  attempts BIGINT NOT NULL DEFAULT 0,
  last_status BIGINT,
  last_error TEXT,
  next_attempt_at BIGINT NOT NULL, -- 0 unless pending
  created_at BIGINT NOT NULL,
  payload TEXT NOT NULL, -- sent and signed byte for byte: no JSON column, which would write it anew
  answer TEXT NOT NULL DEFAULT '',
  earlier BIGINT NOT NULL DEFAULT 0, -- attempts before it was last sent again by hand
  lane BIGINT NOT NULL, -- user and endpoint: what waits behind one another
  conversation_id TEXT REFERENCES conversations (id) ON DELETE CASCADE, -- its words go when it goes
  call_id BIGINT,
  customer_phone TEXT
);
CREATE INDEX webhook_deliveries_user ON webhook_deliveries (user_id, id);
CREATE INDEX webhook_deliveries_event ON webhook_deliveries (user_id, event, id);
CREATE INDEX webhook_deliveries_status ON webhook_deliveries (user_id, status, id);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (lane, next_attempt_at, id) WHERE next_attempt_at > 0;
CREATE INDEX webhook_deliveries_old ON webhook_deliveries (created_at) WHERE next_attempt_at = 0;
CREATE INDEX webhook_deliveries_conversation ON webhook_deliveries (conversation_id) WHERE conversation_id IS NOT NULL;
CREATE INDEX webhook_deliveries_call ON webhook_deliveries (call_id) WHERE call_id IS NOT NULL;
CREATE INDEX webhook_deliveries_phone ON webhook_deliveries (user_id, customer_phone) WHERE customer_phone IS NOT NULL;

CREATE TABLE webhook_attempts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  delivery_id BIGINT NOT NULL REFERENCES webhook_deliveries (id) ON DELETE CASCADE,
  at BIGINT NOT NULL,
  status BIGINT,
  error TEXT,
  duration_ms BIGINT NOT NULL
);
CREATE INDEX webhook_attempts_delivery ON webhook_attempts (delivery_id, id);

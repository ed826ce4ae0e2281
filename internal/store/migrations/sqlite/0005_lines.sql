-- +goose Up
ALTER TABLE numbers ADD COLUMN rent BIGINT NOT NULL DEFAULT 0;
CREATE INDEX numbers_due ON numbers (paid_until) WHERE type = 'normal';

-- What searches found: only such numbers can be bought, at the price that was shown.
CREATE TABLE number_offers (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  phone_number TEXT NOT NULL,
  country_code TEXT NOT NULL,
  sms_capable BOOLEAN NOT NULL,
  rent BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, phone_number)
);
CREATE INDEX number_offers_old ON number_offers (created_at);

-- Purchases under way, from before the carrier is asked until the number is a row of numbers or was given back.
CREATE TABLE number_orders (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  phone_number TEXT NOT NULL,
  country_code TEXT NOT NULL,
  sms_capable BOOLEAN NOT NULL,
  rent BIGINT NOT NULL,
  cancelled BOOLEAN NOT NULL DEFAULT FALSE,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX number_orders_phone ON number_orders (phone_number);

CREATE TABLE trunks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  phone_number_id BIGINT NOT NULL UNIQUE REFERENCES numbers (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  sip_address TEXT NOT NULL,
  sip_username TEXT NOT NULL,
  sip_password BLOB, -- encrypted
  transport TEXT NOT NULL,
  srtp TEXT NOT NULL,
  register BOOLEAN NOT NULL,
  inbound_authorization_type TEXT NOT NULL,
  allowed_inbound_ips TEXT NOT NULL,
  outbound_proxy TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX trunks_user ON trunks (user_id, id);

-- Numbers that wait to be verified as caller ids.
CREATE TABLE caller_ids (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  phone_number TEXT NOT NULL,
  code BLOB NOT NULL, -- encrypted
  tries BIGINT NOT NULL DEFAULT 0,
  expires_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  UNIQUE (user_id, phone_number)
);
CREATE INDEX caller_ids_expired ON caller_ids (expires_at);

-- Messages outlive the number that they were sent from.
CREATE TABLE sms (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  phone_number_id BIGINT NOT NULL,
  sender TEXT NOT NULL,
  recipient TEXT NOT NULL,
  body TEXT NOT NULL,
  segments BIGINT NOT NULL,
  segment_price BIGINT NOT NULL,
  total_cost BIGINT NOT NULL,
  status TEXT NOT NULL,
  sid TEXT,
  error TEXT,
  lease_until BIGINT NOT NULL DEFAULT 0,
  attempted_at BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX sms_user ON sms (user_id, id);
CREATE INDEX sms_status ON sms (user_id, status, id);
CREATE INDEX sms_number ON sms (user_id, phone_number_id, id);
CREATE INDEX sms_recipient ON sms (user_id, recipient, id);
CREATE INDEX sms_created ON sms (user_id, created_at, id);
CREATE INDEX sms_old ON sms (created_at);
CREATE INDEX sms_waiting ON sms (id) WHERE status = 'queued';
CREATE UNIQUE INDEX sms_sid ON sms (sid) WHERE sid IS NOT NULL;

CREATE TABLE sms_inbound (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  sid TEXT NOT NULL UNIQUE,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  number_id BIGINT NOT NULL,
  sender TEXT NOT NULL,
  recipient TEXT NOT NULL,
  body TEXT NOT NULL,
  handled BOOLEAN NOT NULL DEFAULT FALSE, -- the assistant has it, or nobody wants it
  created_at BIGINT NOT NULL
);
CREATE INDEX sms_inbound_waiting ON sms_inbound (id) WHERE NOT handled;
CREATE INDEX sms_inbound_old ON sms_inbound (created_at);
CREATE INDEX sms_inbound_sender ON sms_inbound (user_id, sender);

-- Who wrote STOP to a number.
CREATE TABLE sms_opt_outs (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  sender TEXT NOT NULL,
  recipient TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, sender, recipient)
);

CREATE TABLE sandbox_outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  reference TEXT NOT NULL UNIQUE,
  sid TEXT NOT NULL,
  sender TEXT NOT NULL,
  recipient TEXT NOT NULL,
  body TEXT NOT NULL,
  status TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX sandbox_outbox_old ON sandbox_outbox (created_at);
CREATE INDEX sandbox_outbox_user ON sandbox_outbox (user_id, id);

-- The channel that a customer's message came through, and its id there: what is told twice stands once.
ALTER TABLE messages ADD COLUMN channel TEXT NOT NULL DEFAULT '';
ALTER TABLE messages ADD COLUMN external_id TEXT;
CREATE UNIQUE INDEX messages_external ON messages (conversation_id, external_id) WHERE external_id IS NOT NULL;

-- +goose Up
-- Instants are integers: microseconds since 1970 UTC, 0 for none. Money is integer micro-USD. Deleting a user's row takes everything
-- of the user's with it (erasure); what is only hidden carries deleted_at.
CREATE TABLE users (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL,
  email TEXT NOT NULL UNIQUE,
  password_hash TEXT NOT NULL,
  timezone TEXT NOT NULL,
  plan TEXT NOT NULL,
  balance BIGINT NOT NULL DEFAULT 0 CHECK (balance >= 0),
  webhook_url TEXT NOT NULL DEFAULT '',
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  disabled_at BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE keys (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  name TEXT NOT NULL,
  hash BLOB NOT NULL,
  last_used_at BIGINT NOT NULL DEFAULT 0,
  expires_at BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL
);
CREATE INDEX keys_user ON keys (user_id, kind, id);
CREATE INDEX keys_expired ON keys (expires_at) WHERE expires_at > 0;

-- The first answers to requests that carried an Idempotency-Key.
CREATE TABLE idempotency_keys (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  request BLOB NOT NULL,
  status BIGINT NOT NULL DEFAULT 0,
  answer BLOB,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, key)
);
CREATE INDEX idempotency_keys_old ON idempotency_keys (created_at);

-- What this installation keeps about itself: the instance's first start, generated secrets' fingerprints.
CREATE TABLE settings (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
);

-- Models that a setting named once keep their id for ever.
CREATE TABLE models (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  code TEXT NOT NULL,
  name TEXT NOT NULL,
  provider TEXT NOT NULL,
  UNIQUE (kind, code)
);

CREATE TABLE numbers (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  phone_number TEXT NOT NULL,
  nickname TEXT,
  country_code TEXT NOT NULL,
  type TEXT NOT NULL,
  sms_capable BOOLEAN NOT NULL DEFAULT FALSE,
  paid_until BIGINT NOT NULL DEFAULT 0,
  released_at BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL
);
CREATE INDEX numbers_user ON numbers (user_id, id);
-- A number is ours once; a caller id may be verified by several users.
CREATE UNIQUE INDEX numbers_owned ON numbers (phone_number) WHERE type <> 'caller_id';

CREATE TABLE knowledgebases (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  description TEXT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX knowledgebases_user ON knowledgebases (user_id, id);

CREATE TABLE tools (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  description TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  method TEXT NOT NULL,
  timeout BIGINT NOT NULL,
  headers BLOB NOT NULL, -- encrypted JSON: header values hold credentials
  schema TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  UNIQUE (user_id, name)
);
CREATE INDEX tools_user ON tools (user_id, id);

CREATE TABLE assistants (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  uuid TEXT NOT NULL UNIQUE,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  phone_number_id BIGINT REFERENCES numbers (id) ON DELETE SET NULL,
  voice_id BIGINT NOT NULL,
  name TEXT NOT NULL,
  variables TEXT NOT NULL,
  type TEXT NOT NULL,
  status TEXT NOT NULL,
  mode TEXT NOT NULL,
  language_id BIGINT NOT NULL,
  timezone TEXT NOT NULL,
  system_prompt TEXT NOT NULL,
  prompt_version BIGINT NOT NULL,
  initial_message TEXT NOT NULL,
  llm_model_id BIGINT REFERENCES models (id),
  multimodal_model_id BIGINT REFERENCES models (id),
  synthesizer_provider_id BIGINT,
  transcriber_provider_id BIGINT,
  knowledgebase_id BIGINT REFERENCES knowledgebases (id) ON DELETE SET NULL,
  knowledgebase_mode TEXT NOT NULL,
  tools TEXT NOT NULL,
  keywords TEXT NOT NULL,
  pronunciations TEXT NOT NULL,
  llm_temperature BIGINT NOT NULL,
  voice_stability BIGINT NOT NULL,
  voice_similarity BIGINT NOT NULL,
  speech_speed BIGINT NOT NULL,
  ambient_sound TEXT NOT NULL,
  ambient_sound_volume BIGINT NOT NULL,
  allow_interruptions BOOLEAN NOT NULL,
  min_interrupt_words BIGINT,
  interrupt_sensitivity DOUBLE PRECISION NOT NULL,
  endpoint_type TEXT NOT NULL,
  endpoint_sensitivity DOUBLE PRECISION NOT NULL,
  fillers BOOLEAN NOT NULL,
  filler_config TEXT NOT NULL,
  record BOOLEAN NOT NULL,
  enable_noise_cancellation BOOLEAN NOT NULL,
  wait_for_customer BOOLEAN NOT NULL,
  max_duration BIGINT NOT NULL,
  max_silence_duration BIGINT NOT NULL,
  reengagement_interval BIGINT NOT NULL,
  reengagement_prompt TEXT NOT NULL,
  ringing_time BIGINT NOT NULL,
  end_call_on_voicemail BOOLEAN NOT NULL,
  voice_mail_message TEXT NOT NULL,
  post_call_evaluation BOOLEAN NOT NULL,
  post_call_schema TEXT NOT NULL,
  is_webhook_active BOOLEAN NOT NULL,
  webhook_url TEXT,
  inbound_webhook_url TEXT,
  conversation_ended_webhook_url TEXT,
  send_webhook_only_on_completed BOOLEAN NOT NULL,
  include_recording_in_webhook BOOLEAN NOT NULL,
  conversation_inactivity_timeout BIGINT NOT NULL,
  widget_settings TEXT NOT NULL,
  deleted_at BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX assistants_user ON assistants (user_id, id) WHERE deleted_at = 0;
CREATE INDEX assistants_type ON assistants (user_id, type, id) WHERE deleted_at = 0;
CREATE INDEX assistants_knowledgebase ON assistants (knowledgebase_id) WHERE knowledgebase_id IS NOT NULL;
-- One inbound assistant answers a number, whatever races for it.
CREATE UNIQUE INDEX assistants_number ON assistants (phone_number_id) WHERE type = 'inbound' AND deleted_at = 0;

CREATE TABLE assistant_tools (
  assistant_id BIGINT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
  tool_id BIGINT NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
  position BIGINT NOT NULL,
  PRIMARY KEY (assistant_id, tool_id)
);
CREATE INDEX assistant_tools_tool ON assistant_tools (tool_id);

CREATE TABLE prompt_versions (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  assistant_id BIGINT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
  version BIGINT NOT NULL,
  system_prompt TEXT NOT NULL,
  initial_message TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  UNIQUE (assistant_id, version)
);

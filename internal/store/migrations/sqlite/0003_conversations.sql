-- +goose Up
CREATE TABLE conversations (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  assistant_id BIGINT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
  type TEXT NOT NULL,
  variables TEXT NOT NULL,
  external_identifier TEXT, -- the customer's name at the channel: a phone number, the caller's own id
  customer_phone TEXT,
  message_count BIGINT NOT NULL DEFAULT 0,
  total_cost BIGINT NOT NULL DEFAULT 0,
  ai_enabled BOOLEAN NOT NULL DEFAULT TRUE,
  extracted TEXT, -- values of post_call_schema, once the conversation has ended
  ends_at BIGINT NOT NULL, -- when silence will have ended it; 0 once ended
  ended_at BIGINT NOT NULL DEFAULT 0,
  lease_owner TEXT NOT NULL DEFAULT '', -- who is replying
  lease_until BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX conversations_user ON conversations (user_id, seq);
CREATE INDEX conversations_type ON conversations (user_id, type, seq);
CREATE INDEX conversations_assistant ON conversations (assistant_id, seq);
CREATE INDEX conversations_created ON conversations (user_id, created_at, seq);
CREATE INDEX conversations_phone ON conversations (user_id, customer_phone) WHERE customer_phone IS NOT NULL;
CREATE INDEX conversations_silent ON conversations (ends_at) WHERE ends_at > 0;
-- One conversation per assistant and customer in the channels that name the customer.
CREATE UNIQUE INDEX conversations_customer ON conversations (assistant_id, type, external_identifier) WHERE external_identifier IS NOT NULL;

CREATE TABLE messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  role TEXT NOT NULL,
  author TEXT NOT NULL DEFAULT '', -- of an assistant's message: ai, or human
  content TEXT NOT NULL,
  function_calls TEXT,
  sources TEXT,
  answered BOOLEAN NOT NULL DEFAULT TRUE, -- of a customer's message: false until a reply stands or none is wanted
  cost BIGINT NOT NULL DEFAULT 0,
  input_tokens BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL
);
CREATE INDEX messages_conversation ON messages (conversation_id, id);
CREATE INDEX messages_unanswered ON messages (conversation_id, id) WHERE NOT answered;

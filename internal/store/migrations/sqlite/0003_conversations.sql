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
  lease_owner TEXT NOT NULL DEFAULT '', -- the node that answers its messages, or ends it
  lease_until BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX conversations_user ON conversations (user_id, seq);
CREATE INDEX conversations_type ON conversations (user_id, type, seq);
CREATE INDEX conversations_assistant ON conversations (assistant_id, seq);
CREATE INDEX conversations_created ON conversations (user_id, created_at, seq);
CREATE INDEX conversations_phone ON conversations (user_id, customer_phone) WHERE customer_phone IS NOT NULL;
CREATE INDEX conversations_updated ON conversations (updated_at);
CREATE INDEX conversations_silent ON conversations (ends_at) WHERE ends_at > 0;
-- One conversation per assistant and customer in the channels that name the customer.
CREATE UNIQUE INDEX conversations_customer ON conversations (assistant_id, type, external_identifier) WHERE external_identifier IS NOT NULL;

-- A customer's message is pending from its arrival until a reply stands, the model has failed, or none is wanted. Replies that were
-- made out of turn still sort behind what they answer: the order of a conversation is (turn, id).
CREATE TABLE messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  turn BIGINT NOT NULL DEFAULT 0, -- of a reply: the id of the message that it answers
  role TEXT NOT NULL,
  author TEXT NOT NULL, -- customer, ai or human
  content TEXT NOT NULL,
  function_calls TEXT,
  pending BOOLEAN NOT NULL DEFAULT FALSE,
  failed BOOLEAN NOT NULL DEFAULT FALSE, -- no reply came: the model failed
  cost BIGINT NOT NULL DEFAULT 0,
  input_tokens BIGINT NOT NULL DEFAULT 0,
  output_tokens BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL
);
CREATE INDEX messages_conversation ON messages (conversation_id, id);
CREATE INDEX messages_pending ON messages (conversation_id, id) WHERE pending;

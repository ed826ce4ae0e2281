-- +goose Up
-- Asynchronous tools of chats, from their start until the assistant has spoken of their answer.
CREATE TABLE background_tools (
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  n BIGINT NOT NULL, -- which of the conversation's
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  message_id BIGINT NOT NULL REFERENCES messages (id) ON DELETE CASCADE, -- the customer's in whose turn it was started
  name TEXT NOT NULL,
  started TEXT NOT NULL, -- what the model was told of it first
  due_at BIGINT NOT NULL, -- when it is looked at: it has answered, or nobody waits for it any more
  answer TEXT, -- NULL: none, or not yet
  attempts BIGINT NOT NULL DEFAULT 0, -- at speaking of it
  PRIMARY KEY (conversation_id, n)
);
CREATE INDEX background_tools_due ON background_tools (due_at);
CREATE INDEX background_tools_user ON background_tools (user_id);
CREATE INDEX background_tools_message ON background_tools (message_id);

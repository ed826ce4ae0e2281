-- +goose Up
-- The numbers of the server's WhatsApp Business account, as the platform last told them. user_id and assistant_id are ours.
CREATE TABLE whatsapp_senders (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  graph_id TEXT NOT NULL UNIQUE,
  user_id BIGINT REFERENCES users (id) ON DELETE SET NULL,
  assistant_id BIGINT REFERENCES assistants (id) ON DELETE SET NULL,
  phone_number TEXT NOT NULL,
  display_name TEXT NOT NULL,
  status TEXT NOT NULL,
  quality_rating TEXT NOT NULL,
  messaging_limit BIGINT,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX whatsapp_senders_user ON whatsapp_senders (user_id, status, id);
CREATE INDEX whatsapp_senders_assistant ON whatsapp_senders (assistant_id) WHERE assistant_id IS NOT NULL;

CREATE TABLE whatsapp_templates (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  graph_id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  language TEXT NOT NULL,
  category TEXT NOT NULL,
  status TEXT NOT NULL,
  body_text TEXT NOT NULL,
  slots TEXT NOT NULL, -- the gaps that variables fill
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX whatsapp_templates_status ON whatsapp_templates (status, id);

-- What went to and came from WhatsApp. A customer's messages open the window for free text. With a conversation goes all that is known
-- of it here.
CREATE TABLE whatsapp_messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  sender_id BIGINT NOT NULL REFERENCES whatsapp_senders (id) ON DELETE CASCADE,
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  message_id BIGINT NOT NULL DEFAULT 0,
  wamid TEXT NOT NULL DEFAULT '',
  inbound BOOLEAN NOT NULL,
  phone TEXT NOT NULL,
  body TEXT NOT NULL DEFAULT '',
  status TEXT NOT NULL,
  error TEXT NOT NULL DEFAULT '',
  cost BIGINT NOT NULL DEFAULT 0,
  said_at BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX whatsapp_messages_wamid ON whatsapp_messages (wamid) WHERE wamid <> '';
CREATE INDEX whatsapp_messages_window ON whatsapp_messages (sender_id, phone, said_at) WHERE inbound;
CREATE INDEX whatsapp_messages_conversation ON whatsapp_messages (conversation_id, id);
CREATE INDEX whatsapp_messages_user ON whatsapp_messages (user_id);
CREATE INDEX whatsapp_messages_waiting ON whatsapp_messages (updated_at) WHERE status IN ('queued', 'sending');

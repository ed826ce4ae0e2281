-- +goose Up
-- Further numbers of leads, and which of a lead's numbers is called: 0 is its own.
ALTER TABLE leads ADD COLUMN contacts TEXT;
ALTER TABLE leads ADD COLUMN contact BIGINT NOT NULL DEFAULT 0;
-- The list of conversations by what a channel calls the customer.
CREATE INDEX conversations_identifier ON conversations (user_id, external_identifier, seq) WHERE external_identifier IS NOT NULL;
CREATE INDEX whatsapp_messages_sender ON whatsapp_messages (sender_id, conversation_id);

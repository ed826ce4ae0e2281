-- +goose NO TRANSACTION
-- +goose Up
-- Further numbers of leads, and which of a lead's numbers is called: 0 is its own.
ALTER TABLE leads ADD COLUMN IF NOT EXISTS contacts JSONB;
ALTER TABLE leads ADD COLUMN IF NOT EXISTS contact BIGINT NOT NULL DEFAULT 0;
-- The list of conversations by what a channel calls the customer.
DROP INDEX CONCURRENTLY IF EXISTS conversations_identifier;
CREATE INDEX CONCURRENTLY conversations_identifier ON conversations (user_id, external_identifier, seq) WHERE external_identifier IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS whatsapp_messages_sender;
CREATE INDEX CONCURRENTLY whatsapp_messages_sender ON whatsapp_messages (sender_id, conversation_id);

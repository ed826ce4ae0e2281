-- +goose NO TRANSACTION
-- +goose Up
-- Messages are found by what WhatsApp calls their customer.
DROP INDEX CONCURRENTLY IF EXISTS whatsapp_messages_customer;
CREATE INDEX CONCURRENTLY whatsapp_messages_customer ON whatsapp_messages (sender_id, customer, id) WHERE customer <> '';

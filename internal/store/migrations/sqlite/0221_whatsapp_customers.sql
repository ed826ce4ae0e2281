-- +goose Up
-- Messages are found by what WhatsApp calls their customer.
CREATE INDEX whatsapp_messages_customer ON whatsapp_messages (sender_id, customer, id) WHERE customer <> '';

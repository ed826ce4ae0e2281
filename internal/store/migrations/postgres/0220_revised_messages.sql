-- +goose Up
-- Customers edit and delete what they wrote.
ALTER TABLE messages ADD COLUMN edited BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE messages ADD COLUMN deleted BOOLEAN NOT NULL DEFAULT FALSE;
-- What WhatsApp calls a customer whose phone number it may keep back (business-scoped user id).
ALTER TABLE whatsapp_messages ADD COLUMN customer TEXT NOT NULL DEFAULT '';

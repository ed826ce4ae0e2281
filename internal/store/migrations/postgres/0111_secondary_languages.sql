-- +goose Up
-- Further languages that the customer may speak in a call.
ALTER TABLE assistants ADD COLUMN secondary_language_ids JSONB NOT NULL DEFAULT '[]';

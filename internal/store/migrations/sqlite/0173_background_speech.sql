-- +goose Up
-- Assistants may keep out voices that are much fainter than the customer's.
ALTER TABLE assistants ADD COLUMN background_speech_cancellation BOOLEAN NOT NULL DEFAULT FALSE;

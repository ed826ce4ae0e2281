-- +goose Up
-- Assistants may say words of listening while the customer tells a long story.
ALTER TABLE assistants ADD COLUMN backchannels BOOLEAN NOT NULL DEFAULT FALSE;

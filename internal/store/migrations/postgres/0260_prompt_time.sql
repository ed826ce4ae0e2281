-- +goose Up
-- The model is told the time of the conversation, unless the assistant's owner turns that off.
ALTER TABLE assistants ADD COLUMN prompt_current_time BOOLEAN NOT NULL DEFAULT TRUE;

-- +goose Up
-- Why a value that was asked for was not found, and in which language a message is written.
ALTER TABLE calls ADD COLUMN variables_notes JSONB;
ALTER TABLE conversations ADD COLUMN extracted_notes JSONB;
ALTER TABLE messages ADD COLUMN language TEXT NOT NULL DEFAULT '';

-- +goose Up
-- Why a value that was asked for was not found, and in which language a message is written.
ALTER TABLE calls ADD COLUMN variables_notes TEXT;
ALTER TABLE conversations ADD COLUMN extracted_notes TEXT;
ALTER TABLE messages ADD COLUMN language TEXT NOT NULL DEFAULT '';

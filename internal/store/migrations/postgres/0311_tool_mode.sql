-- +goose Up
-- Whether a conversation waits for a tool.
ALTER TABLE tools ADD COLUMN mode TEXT NOT NULL DEFAULT 'sync';

-- +goose Up
-- How the sound of a call was.
ALTER TABLE calls ADD COLUMN media JSONB;

-- +goose Up
-- Who operates this server: their account may set what all users share.
ALTER TABLE users ADD COLUMN operator BOOLEAN NOT NULL DEFAULT FALSE;

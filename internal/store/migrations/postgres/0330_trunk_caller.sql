-- +goose Up
-- The name that a trunk's calls show, and whether they are signed (STIR/SHAKEN).
ALTER TABLE trunks ADD COLUMN caller_name TEXT NOT NULL DEFAULT '';
ALTER TABLE trunks ADD COLUMN sign_calls BOOLEAN NOT NULL DEFAULT FALSE;

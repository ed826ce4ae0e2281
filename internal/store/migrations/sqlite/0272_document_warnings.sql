-- +goose Up
-- What of a document was left out, or may be wrong.
ALTER TABLE documents ADD COLUMN warnings TEXT NOT NULL DEFAULT '[]';

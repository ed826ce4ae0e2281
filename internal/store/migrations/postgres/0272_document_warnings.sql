-- +goose Up
-- What of a document was left out, or may be wrong.
ALTER TABLE documents ADD COLUMN warnings JSONB NOT NULL DEFAULT '[]';

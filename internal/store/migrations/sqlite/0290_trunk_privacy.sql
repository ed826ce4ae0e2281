-- +goose Up
-- How a trunk's calls hide the calling number: anonymous or id.
ALTER TABLE trunks ADD COLUMN privacy TEXT NOT NULL DEFAULT 'anonymous';

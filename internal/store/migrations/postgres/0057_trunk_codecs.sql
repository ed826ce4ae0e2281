-- +goose Up
-- The codecs that a trunk's calls use, the preferred one first.
ALTER TABLE trunks ADD COLUMN codecs JSONB NOT NULL DEFAULT '[]';

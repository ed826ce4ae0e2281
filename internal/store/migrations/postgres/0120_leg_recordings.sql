-- +goose Up
-- The name of a leg's recording in blob storage, '' for none: there is one only where its call has one.
ALTER TABLE call_legs ADD COLUMN recording TEXT NOT NULL DEFAULT '';

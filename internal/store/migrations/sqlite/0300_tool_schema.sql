-- +goose Up
-- The parameters of a tool as a JSON Schema, where the short form in schema can't say them.
ALTER TABLE tools ADD COLUMN json_schema TEXT;

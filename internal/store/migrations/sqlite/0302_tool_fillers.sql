-- +goose Up
-- What is said on the telephone while a tool runs, when it takes a moment and when it takes longer.
ALTER TABLE tools ADD COLUMN filler TEXT NOT NULL DEFAULT '';
ALTER TABLE tools ADD COLUMN second_filler TEXT NOT NULL DEFAULT '';

-- +goose Up
-- Who takes a number's calls outside its hours, and whose calls are turned away.
ALTER TABLE numbers ADD COLUMN route TEXT;

-- +goose Up
-- What a conversation used of each vendor, and which vendors stood in for which.
ALTER TABLE conversations ADD COLUMN vendor_uses TEXT;
ALTER TABLE conversations ADD COLUMN vendor_switches TEXT;

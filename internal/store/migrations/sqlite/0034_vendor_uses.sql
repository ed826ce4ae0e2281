-- +goose Up
-- What a call used of each vendor.
ALTER TABLE calls ADD COLUMN vendor_uses TEXT;

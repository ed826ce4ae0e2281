-- +goose Up
-- Which vendors stood in for which in a call.
ALTER TABLE calls ADD COLUMN vendor_switches TEXT;

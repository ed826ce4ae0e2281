-- +goose Up
-- The models that a server of the operator's own listed, one a line.
ALTER TABLE vendor_keys ADD COLUMN models TEXT NOT NULL DEFAULT '';

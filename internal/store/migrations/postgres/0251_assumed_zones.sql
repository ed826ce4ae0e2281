-- +goose Up
-- Nobody has chosen the account's time zone: it becomes that of the browser in which its first owner signs in.
ALTER TABLE users ADD COLUMN zone_assumed BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Up
-- Until when a user's test call over a trunk keeps others from beginning.
ALTER TABLE users ADD COLUMN trying_until BIGINT NOT NULL DEFAULT 0;

-- +goose Up
-- When a campaign is to begin by itself; 0: it is not.
ALTER TABLE campaigns ADD COLUMN starts_at BIGINT NOT NULL DEFAULT 0;

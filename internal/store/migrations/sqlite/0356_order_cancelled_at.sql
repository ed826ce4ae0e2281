-- +goose Up
-- When the buyer of a number was told that the purchase failed: what the carrier may have sold is looked for a while later.
ALTER TABLE number_orders ADD COLUMN cancelled_at BIGINT NOT NULL DEFAULT 0;

-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS campaigns_due;
CREATE INDEX CONCURRENTLY campaigns_due ON campaigns (starts_at) WHERE starts_at > 0 AND deleted_at = 0;

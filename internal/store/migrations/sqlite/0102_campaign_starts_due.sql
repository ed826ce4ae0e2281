-- +goose Up
CREATE INDEX campaigns_due ON campaigns (starts_at) WHERE starts_at > 0 AND deleted_at = 0;

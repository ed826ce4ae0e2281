-- +goose Up
-- The trace in which a call, a conversation or a webhook is recorded, as a W3C traceparent; '' where nothing is traced.
ALTER TABLE calls ADD COLUMN trace TEXT NOT NULL DEFAULT '';
ALTER TABLE conversations ADD COLUMN trace TEXT NOT NULL DEFAULT '';
ALTER TABLE webhook_deliveries ADD COLUMN trace TEXT NOT NULL DEFAULT '';

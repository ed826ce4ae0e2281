-- +goose Up
-- Whose certificates a trunk over TLS is believed by, PEM.
ALTER TABLE trunks ADD COLUMN tls_ca TEXT NOT NULL DEFAULT '';

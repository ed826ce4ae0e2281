-- +goose Up
-- Whose access token a credential is: the id of the grant, a credential too, that an app was given by OAuth (0: none).
ALTER TABLE keys ADD COLUMN grant_id BIGINT NOT NULL DEFAULT 0;

-- +goose Up
-- Whether a call is a test: it takes no line of the plan's, and costs nothing.
ALTER TABLE calls ADD COLUMN test BOOLEAN NOT NULL DEFAULT FALSE;

-- +goose Up
-- Who or what took an outgoing call, as it was judged.
ALTER TABLE calls ADD COLUMN verdicts TEXT;

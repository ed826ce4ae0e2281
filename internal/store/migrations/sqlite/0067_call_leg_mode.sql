-- +goose Up
-- What a supervisor or guest hears and does: listen, whisper, talk, take_over; '' for the target of a transfer.
ALTER TABLE call_legs ADD COLUMN mode TEXT NOT NULL DEFAULT '';

-- +goose Up
-- Which person of the account wrote a message, and who takes part in a call or had a telephone called: their names then.
ALTER TABLE messages ADD COLUMN author_name TEXT NOT NULL DEFAULT '';
ALTER TABLE call_legs ADD COLUMN person TEXT NOT NULL DEFAULT '';

-- +goose Up
-- The country in which an account's national telephone numbers are read. NULL is filled in from the time zone at the next
-- start; an empty one is none.
ALTER TABLE users ADD COLUMN country TEXT;

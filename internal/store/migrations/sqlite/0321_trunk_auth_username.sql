-- +goose Up
-- The user name in answers to a trunk's challenges ('': its user name), and whether its sound before an answer is played.
ALTER TABLE trunks ADD COLUMN auth_username TEXT NOT NULL DEFAULT '';
ALTER TABLE trunks ADD COLUMN early_media TEXT NOT NULL DEFAULT 'play';

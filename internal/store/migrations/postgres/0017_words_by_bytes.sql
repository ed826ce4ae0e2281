-- +goose NO TRANSACTION
-- +goose Up
-- This engine only. Words of a vocabulary by what they begin with, whatever the order of the database's own language is.
DROP INDEX CONCURRENTLY IF EXISTS words_by_bytes;
CREATE INDEX CONCURRENTLY words_by_bytes ON words (knowledgebase_id, word text_pattern_ops);

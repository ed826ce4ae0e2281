-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS calls_unindexed;
CREATE INDEX CONCURRENTLY calls_unindexed ON calls (id) WHERE NOT indexed AND ended_at > 0;
DROP INDEX CONCURRENTLY IF EXISTS conversations_unindexed;
CREATE INDEX CONCURRENTLY conversations_unindexed ON conversations (seq) WHERE indexed < message_count;

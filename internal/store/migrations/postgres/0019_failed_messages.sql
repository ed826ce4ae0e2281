-- +goose NO TRANSACTION
-- +goose Up
-- The overview counts the messages of the last days that got no reply.
DROP INDEX CONCURRENTLY IF EXISTS messages_failed;
CREATE INDEX CONCURRENTLY messages_failed ON messages (created_at, conversation_id) WHERE failed;

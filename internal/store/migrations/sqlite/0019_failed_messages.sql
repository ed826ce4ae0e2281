-- +goose Up
-- The overview counts the messages of the last days that got no reply.
CREATE INDEX messages_failed ON messages (created_at, conversation_id) WHERE failed;

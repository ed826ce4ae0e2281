-- +goose Up
CREATE INDEX calls_unindexed ON calls (id) WHERE NOT indexed AND ended_at > 0;
CREATE INDEX conversations_unindexed ON conversations (seq) WHERE indexed < message_count;

-- +goose NO TRANSACTION
-- +goose Up
-- Deleted assistants are removed when nothing of their history is left, and an account's are counted with them.
DROP INDEX CONCURRENTLY IF EXISTS assistants_deleted;
CREATE INDEX CONCURRENTLY assistants_deleted ON assistants (id) WHERE deleted_at > 0;
DROP INDEX CONCURRENTLY IF EXISTS assistants_owner;
CREATE INDEX CONCURRENTLY assistants_owner ON assistants (user_id, id);
DROP INDEX CONCURRENTLY IF EXISTS campaigns_assistant;
CREATE INDEX CONCURRENTLY campaigns_assistant ON campaigns (assistant_id);

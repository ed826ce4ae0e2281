-- +goose Up
-- Deleted assistants are removed when nothing of their history is left, and an account's are counted with them.
CREATE INDEX assistants_deleted ON assistants (id) WHERE deleted_at > 0;
CREATE INDEX assistants_owner ON assistants (user_id, id);
CREATE INDEX campaigns_assistant ON campaigns (assistant_id);

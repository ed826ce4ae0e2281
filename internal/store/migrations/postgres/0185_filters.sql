-- +goose NO TRANSACTION
-- +goose Up
-- An index for each statement in a write transaction that read a whole table.
DROP INDEX CONCURRENTLY IF EXISTS number_orders_owner;
CREATE INDEX CONCURRENTLY number_orders_owner ON number_orders (user_id);
DROP INDEX CONCURRENTLY IF EXISTS assistants_any_number;
CREATE INDEX CONCURRENTLY assistants_any_number ON assistants (phone_number_id) WHERE phone_number_id IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS call_requests_call;
CREATE INDEX CONCURRENTLY call_requests_call ON call_requests (call_id);
DROP INDEX CONCURRENTLY IF EXISTS leads_owner;
CREATE INDEX CONCURRENTLY leads_owner ON leads (owner) WHERE owner <> '';
DROP INDEX CONCURRENTLY IF EXISTS assistants_unsealed;
CREATE INDEX CONCURRENTLY assistants_unsealed ON assistants (id) WHERE variables <> '{}';

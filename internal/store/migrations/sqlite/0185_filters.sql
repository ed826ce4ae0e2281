-- +goose Up
-- An index for each statement in a write transaction that read a whole table.
CREATE INDEX number_orders_owner ON number_orders (user_id);
CREATE INDEX assistants_any_number ON assistants (phone_number_id) WHERE phone_number_id IS NOT NULL;
CREATE INDEX call_requests_call ON call_requests (call_id);
CREATE INDEX leads_owner ON leads (owner) WHERE owner <> '';
CREATE INDEX assistants_unsealed ON assistants (id) WHERE variables <> '{}';

-- +goose Up
-- Whose words a test or a replay is made of, by phone number or the channel's name for them; empty: nobody's. They go when the customer is erased.
ALTER TABLE tests ADD COLUMN customer TEXT NOT NULL DEFAULT '';
ALTER TABLE test_runs ADD COLUMN customer TEXT NOT NULL DEFAULT '';
CREATE INDEX tests_customer ON tests (user_id, customer) WHERE customer <> '';
CREATE INDEX test_runs_customer ON test_runs (user_id, customer) WHERE customer <> '';

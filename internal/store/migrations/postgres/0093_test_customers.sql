-- +goose NO TRANSACTION
-- +goose Up
-- Whose words a test or a replay is made of, by phone number or the channel's name for them; empty: nobody's. They go when the customer is erased.
ALTER TABLE tests ADD COLUMN IF NOT EXISTS customer TEXT NOT NULL DEFAULT '';
ALTER TABLE test_runs ADD COLUMN IF NOT EXISTS customer TEXT NOT NULL DEFAULT '';
DROP INDEX CONCURRENTLY IF EXISTS tests_customer;
CREATE INDEX CONCURRENTLY tests_customer ON tests (user_id, customer) WHERE customer <> '';
DROP INDEX CONCURRENTLY IF EXISTS test_runs_customer;
CREATE INDEX CONCURRENTLY test_runs_customer ON test_runs (user_id, customer) WHERE customer <> '';

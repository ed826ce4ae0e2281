-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS test_results_script;
CREATE INDEX CONCURRENTLY test_results_script ON test_results (run_id) WHERE script <> '';

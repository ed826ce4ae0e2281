-- +goose Up
CREATE INDEX test_results_script ON test_results (run_id) WHERE script <> '';

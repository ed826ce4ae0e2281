-- +goose Up
-- The script of a test, as it was when a run began: once in a run, not with each performance. What former versions stored with
-- performances is moved by Tx.ShareScripts.
CREATE TABLE test_scripts (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id BIGINT NOT NULL REFERENCES test_runs (id) ON DELETE CASCADE,
  test_id BIGINT, -- the test may be gone
  script TEXT NOT NULL
);
CREATE INDEX test_scripts_run ON test_scripts (run_id);
CREATE INDEX test_scripts_test ON test_scripts (test_id) WHERE test_id IS NOT NULL;
ALTER TABLE test_results ADD COLUMN script_id BIGINT;

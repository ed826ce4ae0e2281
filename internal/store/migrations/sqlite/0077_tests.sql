-- +goose Up
-- Tests of assistants: conversations that are written down, the runs in which they were performed, and what became of each performance.
CREATE TABLE tests (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  assistant_id BIGINT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  channel TEXT NOT NULL,
  script TEXT NOT NULL, -- YAML
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX tests_assistant ON tests (assistant_id, id);
CREATE INDEX tests_user ON tests (user_id);
CREATE TABLE test_runs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  assistant_id BIGINT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
  draft TEXT, -- what of the assistant was changed for it
  call_id BIGINT, -- what it replays
  conversation_id TEXT,
  stopped BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  finished_at BIGINT NOT NULL
);
CREATE INDEX test_runs_assistant ON test_runs (assistant_id, id);
CREATE INDEX test_runs_user ON test_runs (user_id);
CREATE TABLE test_results (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  run_id BIGINT NOT NULL REFERENCES test_runs (id) ON DELETE CASCADE,
  user_id BIGINT NOT NULL,
  assistant_id BIGINT NOT NULL,
  test_id BIGINT, -- the test may be gone
  name TEXT NOT NULL,
  channel TEXT NOT NULL,
  state TEXT NOT NULL,
  error TEXT NOT NULL,
  script TEXT NOT NULL, -- as it was when the run began
  place BIGINT NOT NULL, -- among the performances of its script
  verdicts TEXT,
  figures TEXT,
  turns TEXT,
  function_calls TEXT,
  picture TEXT NOT NULL,
  played_call_id BIGINT,
  took_ms BIGINT NOT NULL,
  node TEXT NOT NULL,
  tries BIGINT NOT NULL,
  due_at BIGINT NOT NULL, -- when a process may take it; until then the one that has it does
  finished_at BIGINT NOT NULL
);
CREATE INDEX test_results_run ON test_results (run_id, id);
CREATE INDEX test_results_test ON test_results (test_id, run_id);
CREATE INDEX test_results_open ON test_results (due_at) WHERE state IN ('waiting', 'running');

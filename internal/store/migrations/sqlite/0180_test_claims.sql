-- +goose Up
-- Performances that wait or are under way are counted by user without reading their rows.
DROP INDEX test_results_open;
CREATE INDEX test_results_open ON test_results (due_at, state, user_id, channel, id) WHERE state IN ('waiting', 'running');

-- +goose Up
-- Runs of tests against the draft of an assistant, frozen as it was, and whether a draft must pass before it is published.
ALTER TABLE test_runs ADD COLUMN draft_at BIGINT NOT NULL DEFAULT 0; -- when the draft was saved
ALTER TABLE test_runs ADD COLUMN sealed_draft BLOB; -- its changes, as assistant_drafts has them
ALTER TABLE assistants ADD COLUMN require_tests BOOLEAN NOT NULL DEFAULT FALSE;

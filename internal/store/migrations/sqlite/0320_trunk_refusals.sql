-- +goose Up
-- Calls that came over users' trunks and were refused before they became calls: the latest of each trunk.
CREATE TABLE trunk_refusals (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  trunk_id BIGINT NOT NULL REFERENCES trunks (id) ON DELETE CASCADE,
  at BIGINT NOT NULL,
  status BIGINT NOT NULL,
  reason TEXT NOT NULL,
  known BOOLEAN NOT NULL,
  place TEXT NOT NULL,
  caller TEXT NOT NULL,
  transport TEXT NOT NULL,
  peer TEXT NOT NULL,
  text TEXT NOT NULL
);
CREATE INDEX trunk_refusals_by_trunk ON trunk_refusals (trunk_id, known, id);
CREATE INDEX trunk_refusals_by_caller ON trunk_refusals (user_id, caller);
CREATE INDEX trunk_refusals_by_time ON trunk_refusals (at);

-- +goose Up
-- What a node asks of the node that has a live call: to call somebody into it, to have them listen or take over. The
-- asking node removes the row when it has read the answer.
CREATE TABLE call_requests (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  call_id BIGINT NOT NULL REFERENCES calls (id) ON DELETE CASCADE,
  user_id BIGINT NOT NULL,
  node TEXT NOT NULL, -- that has the call
  kind TEXT NOT NULL,
  body TEXT NOT NULL, -- JSON
  answer TEXT NOT NULL, -- JSON; '' while there is none
  created_at BIGINT NOT NULL, -- by the database's clock
  taken_at BIGINT NOT NULL -- when the node began with it, likewise; 0 before
);
CREATE INDEX call_requests_node ON call_requests (node, taken_at);
CREATE INDEX call_requests_created ON call_requests (created_at);
-- When another node last looked at the call, by the database's clock: the figures in its row are kept fresh meanwhile.
ALTER TABLE calls ADD COLUMN watched_at BIGINT NOT NULL DEFAULT 0;

-- +goose Up
-- The processes that share this database, as they say it themselves every few seconds.
CREATE TABLE nodes (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL, -- of its machine
  roles TEXT NOT NULL, -- api, calls: separated by commas
  version TEXT NOT NULL,
  live BIGINT NOT NULL, -- calls that it has
  leaving BOOLEAN NOT NULL, -- it takes nothing new
  started_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL -- by the database's clock, as started_at
);
CREATE INDEX nodes_seen ON nodes (seen_at);

-- Which of them is registered with a trunk that wants it.
CREATE TABLE trunk_holders (
  trunk_id BIGINT PRIMARY KEY REFERENCES trunks (id) ON DELETE CASCADE,
  node TEXT NOT NULL,
  registered BOOLEAN NOT NULL
);

CREATE INDEX trunk_holders_node ON trunk_holders (node);

-- What a node asks of another one, beside what is about a live call (call_requests).
CREATE TABLE node_requests (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  call_id BIGINT NOT NULL, -- 0
  user_id BIGINT NOT NULL,
  node TEXT NOT NULL, -- that is asked
  kind TEXT NOT NULL,
  body TEXT NOT NULL, -- JSON
  answer TEXT NOT NULL, -- JSON; '' while there is none
  created_at BIGINT NOT NULL, -- by the database's clock
  taken_at BIGINT NOT NULL -- when the node began with it, likewise; 0 before
);
CREATE INDEX node_requests_node ON node_requests (node, taken_at);
CREATE INDEX node_requests_created ON node_requests (created_at);

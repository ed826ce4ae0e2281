-- +goose Up
-- Who is writing a reply in a conversation now, so that readers on every node see it. A row is forgotten soon after until.
CREATE TABLE writers (
  conversation_id TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
  person BIGINT NOT NULL, -- a member's id, 0: the owner
  name TEXT NOT NULL,
  until BIGINT NOT NULL,
  PRIMARY KEY (conversation_id, person)
);

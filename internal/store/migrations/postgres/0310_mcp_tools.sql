-- +goose Up
-- Tools of MCP servers: how a server is asked, and what it last said of its tools.
ALTER TABLE tools ADD COLUMN kind TEXT NOT NULL DEFAULT 'http';
ALTER TABLE tools ADD COLUMN oauth_client_id TEXT NOT NULL DEFAULT '';
ALTER TABLE tools ADD COLUMN oauth_secret BYTEA; -- encrypted
ALTER TABLE tools ADD COLUMN oauth_token_url TEXT NOT NULL DEFAULT '';
ALTER TABLE tools ADD COLUMN oauth_scope TEXT NOT NULL DEFAULT '';
ALTER TABLE tools ADD COLUMN allowed_tools JSON NOT NULL DEFAULT '[]';
CREATE TABLE tool_listings (
  tool_id BIGINT PRIMARY KEY REFERENCES tools (id) ON DELETE CASCADE,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  tools JSON NOT NULL,
  more BOOLEAN NOT NULL,
  error TEXT NOT NULL,
  listed_at BIGINT,
  tried_at BIGINT NOT NULL
);
CREATE INDEX tool_listings_user ON tool_listings (user_id);

-- +goose Up
-- Versions of whole assistants, in place of versions of the prompt alone (prompt_versions, which nodes of the former
-- version still write). What was kept of prompts is taken over.
CREATE TABLE assistant_versions (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  assistant_id BIGINT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
  version BIGINT NOT NULL, -- counted per assistant
  prompt_version BIGINT NOT NULL,
  wording BOOLEAN NOT NULL, -- the first with its prompt_version
  whole BOOLEAN NOT NULL, -- has all fields
  author TEXT NOT NULL,
  note TEXT NOT NULL,
  changed TEXT NOT NULL, -- names of fields
  fields TEXT NOT NULL, -- JSON, without the variables
  sealed_variables BLOB,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX assistant_versions_number ON assistant_versions (assistant_id, version);
CREATE INDEX assistant_versions_wording ON assistant_versions (assistant_id, prompt_version) WHERE wording;
INSERT INTO assistant_versions (assistant_id, version, prompt_version, wording, whole, author, note, changed, fields, created_at)
  SELECT assistant_id, version, version, TRUE, FALSE, '', '', '["system_prompt","initial_message"]',
    json_object('system_prompt', system_prompt, 'initial_message', initial_message), created_at FROM prompt_versions;

-- +goose Up
-- What is deleted is hidden at once (deleted_at) and removed in small steps by a job: a large document must not hold the only writer up.
ALTER TABLE knowledgebases ADD COLUMN deleted_at BIGINT NOT NULL DEFAULT 0;
-- Counts the changes of what its vectors are; caches go by it.
ALTER TABLE knowledgebases ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;

CREATE TABLE documents (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  knowledgebase_id BIGINT NOT NULL REFERENCES knowledgebases (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  description TEXT,
  type TEXT NOT NULL,
  status TEXT NOT NULL,
  url TEXT NOT NULL, -- of a website: where reading begins
  links TEXT NOT NULL, -- of a website: exactly these pages
  relative_links_limit BIGINT NOT NULL,
  blob TEXT NOT NULL, -- of a file: its name in blob storage
  size BIGINT NOT NULL, -- of a file: bytes
  error TEXT,
  hash TEXT NOT NULL DEFAULT '', -- SHA-256 of the text
  progress_done BIGINT NOT NULL DEFAULT 0,
  progress_total BIGINT NOT NULL DEFAULT 0,
  chunks_count BIGINT NOT NULL DEFAULT 0,
  run BIGINT NOT NULL DEFAULT 1, -- counts its processings
  live BIGINT NOT NULL DEFAULT 0, -- the run whose passages are found; 0 for none
  embedder TEXT NOT NULL DEFAULT '', -- the model that its vectors are of
  lease_until BIGINT NOT NULL DEFAULT 0, -- somebody processes it
  deleted_at BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX documents_knowledgebase ON documents (knowledgebase_id, deleted_at, id);
CREATE INDEX documents_processing ON documents (lease_until) WHERE status = 'processing';
CREATE INDEX documents_blob ON documents (blob) WHERE blob <> '';
CREATE INDEX documents_hash ON documents (knowledgebase_id, hash, id) WHERE hash <> '';

-- A passage counts when its run is its document's live one.
CREATE TABLE chunks (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  knowledgebase_id BIGINT NOT NULL REFERENCES knowledgebases (id) ON DELETE CASCADE,
  document_id BIGINT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
  run BIGINT NOT NULL,
  position BIGINT NOT NULL,
  title TEXT NOT NULL, -- what the document was called when it was read
  heading TEXT NOT NULL,
  page BIGINT NOT NULL,
  url TEXT NOT NULL,
  text TEXT NOT NULL,
  UNIQUE (document_id, run, position)
);
CREATE INDEX chunks_knowledgebase ON chunks (knowledgebase_id);

CREATE TABLE vectors (
  chunk_id BIGINT PRIMARY KEY REFERENCES chunks (id) ON DELETE CASCADE,
  knowledgebase_id BIGINT NOT NULL,
  code BLOB NOT NULL, -- a bit per dimension: its sign
  vector BLOB NOT NULL -- float32, little endian, of length 1
);
CREATE INDEX vectors_knowledgebase ON vectors (knowledgebase_id, chunk_id);

-- A knowledgebase's vocabulary: each word as it is written, in lower case, and how many passages have it.
CREATE TABLE words (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  knowledgebase_id BIGINT NOT NULL REFERENCES knowledgebases (id) ON DELETE CASCADE,
  word TEXT NOT NULL,
  chunks BIGINT NOT NULL,
  UNIQUE (knowledgebase_id, word)
);

-- The keyword index: the tokens of a passage, and those that a misspelt word is found by. Each token begins with its knowledgebase, so
-- that others' passages cost a search nothing. In the other database these are tables with a tsvector.
CREATE VIRTUAL TABLE
  chunk_tokens USING fts5(tokens, content='', contentless_delete=1, detail=none, tokenize="ascii tokenchars '_+-'");
CREATE VIRTUAL TABLE
  word_tokens USING fts5(tokens, content='', contentless_delete=1, detail=none, tokenize="ascii tokenchars '_+-'");
-- +goose StatementBegin
CREATE TRIGGER
    chunks_gone AFTER DELETE ON chunks BEGIN DELETE FROM chunk_tokens WHERE rowid = old.id; END;
-- +goose StatementEnd
-- +goose StatementBegin
CREATE TRIGGER
    words_gone AFTER DELETE ON words BEGIN DELETE FROM word_tokens WHERE rowid = old.id; END;
-- +goose StatementEnd

-- The passages that a reply was given.
ALTER TABLE messages ADD COLUMN sources TEXT;

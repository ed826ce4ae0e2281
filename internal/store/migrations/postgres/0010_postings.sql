-- +goose Up
-- This engine only.
-- The keyword index of passages, a row for each token of a batch of them: ids holds the passages that have it, four bytes for each, its
-- distance from the batch's first passage. A GIN index finds as fast, but then each passage found costs a page of the table: seconds for
-- a common word among 100,000. A batch goes as a whole, when its first passage does.
DROP FUNCTION chunks_of;
ALTER TABLE chunk_tokens RENAME TO chunk_vectors;
CREATE TABLE chunk_tokens (
  token TEXT COLLATE "C" NOT NULL,
  first BIGINT NOT NULL,
  ids BYTEA NOT NULL,
  PRIMARY KEY (token, first)
);
INSERT INTO chunk_tokens
SELECT t.token, c.first, string_agg(int4send((c.id - c.first)::int), ''::bytea ORDER BY c.id)
FROM (SELECT id, min(id) OVER (PARTITION BY document_id, run) AS first FROM chunks) AS c
JOIN chunk_vectors AS v ON v.rowid = c.id CROSS JOIN unnest(tsvector_to_array(v.tokens)) AS t (token)
GROUP BY t.token, c.first;
CREATE INDEX chunk_tokens_first ON chunk_tokens (first);
DROP TABLE chunk_vectors;

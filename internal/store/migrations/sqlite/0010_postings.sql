-- +goose Up
-- In the other database the keyword index of passages gets another shape; FTS5 is that shape already.
SELECT 1;

-- +goose Up
-- Here the order of bytes is the only one: the vocabulary's own index does.
SELECT 1;

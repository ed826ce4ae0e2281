-- +goose Up
-- 0079 moved what it held into assistant_versions, and no node has used it since.
DROP TABLE prompt_versions;

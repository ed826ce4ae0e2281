-- +goose Up
-- What is found out from a conversation as a JSON Schema, where the short form in post_call_schema can't say it.
ALTER TABLE assistants ADD COLUMN post_call_json_schema JSON;

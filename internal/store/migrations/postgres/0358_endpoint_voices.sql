-- +goose Up
-- Any number of voices of an endpoint; voice has the first, for nodes of the former version. A voice's place among all codes that there
-- ever were is in its id, and an assistant has the place of its own.
ALTER TABLE endpoints ADD COLUMN voices JSONB NOT NULL DEFAULT '[]';
ALTER TABLE endpoints ADD COLUMN voice_codes JSONB NOT NULL DEFAULT '[]';
ALTER TABLE assistants ADD COLUMN voice_endpoint_place BIGINT NOT NULL DEFAULT 0;

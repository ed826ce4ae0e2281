-- +goose Up
-- Who else had a part in a call, and the headers that came or went with it.
ALTER TABLE calls ADD COLUMN signalling JSONB;
-- Whether a trunk's calls hide who calls, and the headers that they send.
ALTER TABLE trunks ADD COLUMN hide_caller_id BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE trunks ADD COLUMN sip_headers JSONB NOT NULL DEFAULT '{}';

-- +goose NO TRANSACTION
-- +goose Up
-- By which a deleted endpoint is taken from its assistants.
DROP INDEX CONCURRENTLY IF EXISTS assistants_llm_endpoint;
CREATE INDEX CONCURRENTLY assistants_llm_endpoint ON assistants (llm_endpoint_id);
DROP INDEX CONCURRENTLY IF EXISTS assistants_voice_endpoint;
CREATE INDEX CONCURRENTLY assistants_voice_endpoint ON assistants (voice_endpoint_id);
DROP INDEX CONCURRENTLY IF EXISTS assistants_transcriber_endpoint;
CREATE INDEX CONCURRENTLY assistants_transcriber_endpoint ON assistants (transcriber_endpoint_id);

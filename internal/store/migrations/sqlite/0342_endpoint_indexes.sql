-- +goose Up
-- By which a deleted endpoint is taken from its assistants.
CREATE INDEX assistants_llm_endpoint ON assistants (llm_endpoint_id);
CREATE INDEX assistants_voice_endpoint ON assistants (voice_endpoint_id);
CREATE INDEX assistants_transcriber_endpoint ON assistants (transcriber_endpoint_id);

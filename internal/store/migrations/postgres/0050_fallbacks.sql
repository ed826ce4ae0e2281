-- +goose Up
-- What takes over when an assistant's models, voice or transcriber fail, in order.
ALTER TABLE assistants ADD COLUMN fallback_llm_model_ids JSONB NOT NULL DEFAULT '[]';
ALTER TABLE assistants ADD COLUMN fallback_multimodal_model_ids JSONB NOT NULL DEFAULT '[]';
ALTER TABLE assistants ADD COLUMN fallback_voice_ids JSONB NOT NULL DEFAULT '[]';
ALTER TABLE assistants ADD COLUMN fallback_transcriber_provider_ids JSONB NOT NULL DEFAULT '[]';

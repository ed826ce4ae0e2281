-- +goose Up
-- Messages that people have spoken for the voicemails that their assistants reach. A row outlives its assistant until its blob is removed.
CREATE TABLE voicemail_recordings (
  assistant_id BIGINT PRIMARY KEY,
  user_id BIGINT NOT NULL,
  blob TEXT NOT NULL, -- its name in blob storage: 16-bit WAV, mono, 16 kHz
  duration_ms BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);

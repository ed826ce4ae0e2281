-- +goose Up
-- What was said of a call in SIP.
CREATE TABLE call_sip (
  call_id BIGINT PRIMARY KEY REFERENCES calls (id) ON DELETE CASCADE,
  messages TEXT NOT NULL
);

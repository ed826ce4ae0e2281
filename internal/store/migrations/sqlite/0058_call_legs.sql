-- +goose Up
-- Who was called into a live call besides its customer: the target of a transfer. A leg is open while ended_at is 0; whoever ends the call ends it too.
CREATE TABLE call_legs (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  call_id BIGINT NOT NULL REFERENCES calls (id) ON DELETE CASCADE,
  user_id BIGINT NOT NULL,
  kind TEXT NOT NULL,
  status TEXT NOT NULL,
  phone_number TEXT NOT NULL, -- who was called
  caller_id TEXT NOT NULL, -- the number that they saw
  ended_reason TEXT NOT NULL,
  summary TEXT NOT NULL, -- what they were told of the conversation
  turns TEXT NOT NULL, -- what was said before they were joined
  max_duration BIGINT NOT NULL, -- seconds
  rate BIGINT NOT NULL, -- a started minute, as it was when the leg began
  cost BIGINT NOT NULL,
  reserved BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  answered_at BIGINT NOT NULL,
  joined_at BIGINT NOT NULL,
  ended_at BIGINT NOT NULL
);
CREATE INDEX call_legs_call ON call_legs (call_id, id);
ALTER TABLE calls ADD COLUMN leg_cost BIGINT NOT NULL DEFAULT 0;

-- +goose Up
-- A call is live while ended_at is 0. The process that has it says so in seen_at; one that falls silent has its calls closed by another.
CREATE TABLE calls (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  assistant_id BIGINT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
  campaign_id BIGINT,
  lead_id BIGINT,
  attempt BIGINT NOT NULL DEFAULT 0, -- at the lead
  type TEXT NOT NULL,
  status TEXT NOT NULL,
  assistant_phone TEXT,
  customer_phone TEXT,
  number_id BIGINT, -- the own number; it may be gone
  input_variables TEXT NOT NULL,
  variables TEXT NOT NULL, -- values of post_call_schema
  turns TEXT NOT NULL,
  function_calls TEXT NOT NULL,
  answered_by TEXT NOT NULL,
  evaluation TEXT NOT NULL,
  ended_reason TEXT NOT NULL,
  duration BIGINT NOT NULL, -- seconds
  max_duration BIGINT NOT NULL, -- seconds
  carrier_rate BIGINT NOT NULL, -- a started minute, as it was when the call began
  assistant_rate BIGINT NOT NULL, -- a minute, charged by the second
  carrier_cost BIGINT NOT NULL,
  assistant_cost BIGINT NOT NULL,
  reserved BIGINT NOT NULL,
  recording TEXT NOT NULL, -- its name in blob storage, '' for none
  recording_size BIGINT NOT NULL, -- bytes
  recording_due BOOLEAN NOT NULL, -- it is not in blob storage yet
  node TEXT NOT NULL, -- the process that has it
  seen_at BIGINT NOT NULL, -- when that process last said that it lives
  hangup_at BIGINT NOT NULL, -- somebody asked for its end
  report_due BIGINT NOT NULL, -- when it is to be read and told; 0 while it is live, and once that is done
  report_tries BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  ringing_at BIGINT NOT NULL,
  answered_at BIGINT NOT NULL,
  ended_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL
);
CREATE INDEX calls_user ON calls (user_id, id);
CREATE INDEX calls_status ON calls (user_id, status, id);
CREATE INDEX calls_type ON calls (user_id, type, id);
CREATE INDEX calls_assistant ON calls (assistant_id, id);
CREATE INDEX calls_campaign ON calls (campaign_id, id) WHERE campaign_id IS NOT NULL;
CREATE INDEX calls_phone ON calls (user_id, customer_phone, id) WHERE customer_phone IS NOT NULL;
CREATE INDEX calls_created ON calls (user_id, created_at, id);
CREATE INDEX calls_live ON calls (user_id) WHERE ended_at = 0;
CREATE INDEX calls_node ON calls (node) WHERE ended_at = 0;
CREATE INDEX calls_report ON calls (report_due) WHERE report_due > 0;
CREATE INDEX calls_recorded ON calls (ended_at) WHERE recording <> '';
CREATE INDEX calls_ended ON calls (ended_at);
-- Nobody is rung twice for one attempt.
CREATE UNIQUE INDEX calls_attempt ON calls (lead_id, attempt) WHERE lead_id IS NOT NULL;

-- What a user's outgoing calls of a day cost, and what those that are live may cost at most.
CREATE TABLE call_spend (
  user_id BIGINT PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
  day BIGINT NOT NULL, -- since 1970, UTC
  amount BIGINT NOT NULL
);

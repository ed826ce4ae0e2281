-- +goose Up
CREATE TABLE campaigns (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  assistant_id BIGINT NOT NULL REFERENCES assistants (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  status TEXT NOT NULL,
  timezone TEXT NOT NULL,
  max_calls_in_parallel BIGINT NOT NULL,
  mark_complete_when_no_leads BOOLEAN NOT NULL,
  allowed_hours_start_time TEXT NOT NULL,
  allowed_hours_end_time TEXT NOT NULL,
  allowed_days TEXT NOT NULL,
  max_retries BIGINT NOT NULL,
  retry_interval BIGINT NOT NULL, -- minutes
  retry_on_voicemail BOOLEAN NOT NULL,
  retry_on_goal_incomplete BOOLEAN NOT NULL,
  goal_completion_variable TEXT,
  paused_until BIGINT NOT NULL DEFAULT 0,
  pause_reason TEXT,
  started_at BIGINT NOT NULL DEFAULT 0,
  completed_at BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  failing TEXT NOT NULL, -- leads of the calls that failed in a row
  pauses BIGINT NOT NULL DEFAULT 0, -- in a row
  rotation BIGINT NOT NULL DEFAULT 0, -- calls begun: which number is next
  answered BIGINT NOT NULL DEFAULT 0, -- calls that have ended, by outcome
  voicemail BIGINT NOT NULL DEFAULT 0,
  busy BIGINT NOT NULL DEFAULT 0,
  no_answer BIGINT NOT NULL DEFAULT 0,
  failed BIGINT NOT NULL DEFAULT 0,
  canceled BIGINT NOT NULL DEFAULT 0,
  cost BIGINT NOT NULL DEFAULT 0,
  deleted_at BIGINT NOT NULL DEFAULT 0, -- hidden at once; its calls keep its name
  emptied BOOLEAN NOT NULL DEFAULT FALSE -- of a deleted one: its leads, which go in small steps, are gone
);
CREATE INDEX campaigns_user ON campaigns (user_id, id) WHERE deleted_at = 0;
CREATE INDEX campaigns_running ON campaigns (user_id) WHERE status = 'in-progress' AND deleted_at = 0;
CREATE INDEX campaigns_deleted ON campaigns (user_id, id) WHERE deleted_at > 0 AND NOT emptied;

CREATE TABLE campaign_numbers (
  campaign_id BIGINT NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
  number_id BIGINT NOT NULL REFERENCES numbers (id) ON DELETE CASCADE,
  position BIGINT NOT NULL,
  PRIMARY KEY (campaign_id, number_id)
);
CREATE INDEX campaign_numbers_number ON campaign_numbers (number_id);

-- A lead waits while due_at is not 0. Who claims it moves that on by a lease: it is due again when they die before there is a call.
CREATE TABLE leads (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  campaign_id BIGINT NOT NULL REFERENCES campaigns (id) ON DELETE CASCADE,
  phone_number TEXT NOT NULL,
  variables TEXT NOT NULL,
  status TEXT NOT NULL,
  attempts BIGINT NOT NULL DEFAULT 0,
  next_attempt_at BIGINT NOT NULL DEFAULT 0, -- as it is shown
  last_call_id BIGINT,
  outcome TEXT, -- of the last call that has ended, with what was found out
  answered_by TEXT,
  evaluation TEXT NOT NULL,
  extracted TEXT NOT NULL,
  total_cost BIGINT NOT NULL DEFAULT 0,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  serial BIGINT NOT NULL DEFAULT 0, -- attempts ever made
  base BIGINT NOT NULL DEFAULT 0, -- serial when it last began from the start
  fresh BOOLEAN NOT NULL DEFAULT TRUE,
  duplicate BOOLEAN NOT NULL DEFAULT FALSE,
  due_at BIGINT NOT NULL,
  owner TEXT NOT NULL DEFAULT '', -- the node that has claimed it
  watch_at BIGINT NOT NULL DEFAULT 0 -- while it is processed: when to see whether its call is still there
);
CREATE INDEX leads_user ON leads (user_id, id);
CREATE INDEX leads_user_status ON leads (user_id, status, id);
CREATE INDEX leads_user_created ON leads (user_id, created_at, id);
CREATE INDEX leads_phone ON leads (user_id, phone_number, id);
CREATE INDEX leads_campaign ON leads (campaign_id, id);
CREATE INDEX leads_campaign_status ON leads (campaign_id, status, id);
CREATE INDEX leads_campaign_phone ON leads (campaign_id, phone_number, id);
-- A number is in a campaign once, whatever races for it, unless its user wants it twice.
CREATE UNIQUE INDEX leads_once ON leads (campaign_id, phone_number) WHERE NOT duplicate;
-- What is tried again goes before what was not tried yet: a list that takes days must not hold up the retries.
CREATE INDEX leads_again ON leads (campaign_id, due_at, id) WHERE due_at > 0 AND NOT fresh;
CREATE INDEX leads_fresh ON leads (campaign_id, due_at, id) WHERE due_at > 0 AND fresh;
CREATE INDEX leads_watched ON leads (watch_at) WHERE watch_at > 0;

CREATE TABLE blacklist (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  phone_number TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  UNIQUE (user_id, phone_number)
);
CREATE INDEX blacklist_user ON blacklist (user_id, id);

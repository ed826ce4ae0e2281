-- +goose Up
-- The filters of lists, with the days they are asked for; calls that are not counted yet; tests, which are counted nowhere.
CREATE INDEX calls_uncounted ON calls (id) WHERE counted < 2 AND ended_at > 0;
CREATE INDEX calls_tests ON calls (user_id, id) WHERE test;
CREATE INDEX calls_number ON calls (user_id, number_id, created_at, id) WHERE number_id IS NOT NULL;
CREATE INDEX calls_reason ON calls (user_id, ended_reason, created_at, id);
CREATE INDEX calls_answerer ON calls (user_id, answerer, created_at, id);
CREATE INDEX calls_slowest ON calls (user_id, slowest_ms, created_at, id);
CREATE INDEX calls_sentiment ON calls (user_id, sentiment, created_at, id);
CREATE INDEX calls_outcome ON calls (user_id, outcome, created_at, id);
CREATE INDEX calls_assistant_days ON calls (user_id, assistant_id, created_at, id);
CREATE INDEX calls_status_days ON calls (user_id, status, created_at, id);

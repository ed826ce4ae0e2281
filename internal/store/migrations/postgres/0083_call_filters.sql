-- +goose NO TRANSACTION
-- +goose Up
-- The filters of lists, with the days they are asked for; calls that are not counted yet; tests, which are counted nowhere.
DROP INDEX CONCURRENTLY IF EXISTS calls_uncounted;
CREATE INDEX CONCURRENTLY calls_uncounted ON calls (id) WHERE counted < 2 AND ended_at > 0;
DROP INDEX CONCURRENTLY IF EXISTS calls_tests;
CREATE INDEX CONCURRENTLY calls_tests ON calls (user_id, id) WHERE test;
DROP INDEX CONCURRENTLY IF EXISTS calls_number;
CREATE INDEX CONCURRENTLY calls_number ON calls (user_id, number_id, created_at, id) WHERE number_id IS NOT NULL;
DROP INDEX CONCURRENTLY IF EXISTS calls_reason;
CREATE INDEX CONCURRENTLY calls_reason ON calls (user_id, ended_reason, created_at, id);
DROP INDEX CONCURRENTLY IF EXISTS calls_answerer;
CREATE INDEX CONCURRENTLY calls_answerer ON calls (user_id, answerer, created_at, id);
DROP INDEX CONCURRENTLY IF EXISTS calls_slowest;
CREATE INDEX CONCURRENTLY calls_slowest ON calls (user_id, slowest_ms, created_at, id);
DROP INDEX CONCURRENTLY IF EXISTS calls_sentiment;
CREATE INDEX CONCURRENTLY calls_sentiment ON calls (user_id, sentiment, created_at, id);
DROP INDEX CONCURRENTLY IF EXISTS calls_outcome;
CREATE INDEX CONCURRENTLY calls_outcome ON calls (user_id, outcome, created_at, id);
DROP INDEX CONCURRENTLY IF EXISTS calls_assistant_days;
CREATE INDEX CONCURRENTLY calls_assistant_days ON calls (user_id, assistant_id, created_at, id);
DROP INDEX CONCURRENTLY IF EXISTS calls_status_days;
CREATE INDEX CONCURRENTLY calls_status_days ON calls (user_id, status, created_at, id);

-- +goose NO TRANSACTION
-- +goose Up
-- The inbox: what needs a person, longest waiting first; what of it nobody has taken; what somebody has taken.
DROP INDEX CONCURRENTLY IF EXISTS conversations_waiting;
CREATE INDEX CONCURRENTLY conversations_waiting ON conversations (user_id, waits_since, seq) WHERE waits_since > 0;
DROP INDEX CONCURRENTLY IF EXISTS conversations_unassigned;
CREATE INDEX CONCURRENTLY conversations_unassigned ON conversations (user_id, waits_since, seq) WHERE waits_since > 0 AND assignee IS NULL;
DROP INDEX CONCURRENTLY IF EXISTS conversations_assigned;
CREATE INDEX CONCURRENTLY conversations_assigned ON conversations (user_id, assignee, seq) WHERE assignee IS NOT NULL;

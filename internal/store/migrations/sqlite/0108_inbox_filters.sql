-- +goose Up
-- The inbox: what needs a person, longest waiting first; what of it nobody has taken; what somebody has taken.
CREATE INDEX conversations_waiting ON conversations (user_id, waits_since, seq) WHERE waits_since > 0;
CREATE INDEX conversations_unassigned ON conversations (user_id, waits_since, seq) WHERE waits_since > 0 AND assignee IS NULL;
CREATE INDEX conversations_assigned ON conversations (user_id, assignee, seq) WHERE assignee IS NOT NULL;

-- +goose Up
-- Lists and their counts ask for an owner's rows of an assistant or a campaign: both are in the index, so that a count reads no row.
DROP INDEX calls_assistant;
CREATE INDEX calls_assistant ON calls (assistant_id, user_id, id);
DROP INDEX calls_campaign;
CREATE INDEX calls_campaign ON calls (campaign_id, user_id, id) WHERE campaign_id IS NOT NULL;
DROP INDEX leads_campaign;
CREATE INDEX leads_campaign ON leads (campaign_id, user_id, id);

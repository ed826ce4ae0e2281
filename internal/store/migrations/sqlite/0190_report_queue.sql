-- +goose Up
-- Calls whose reports are due are looked for by account, so that one account's backlog holds up nobody else's. Nodes of the former version
-- still look by calls_report.
CREATE INDEX calls_report_due ON calls (user_id, report_due, id) WHERE report_due > 0;

-- +goose Up
-- How a trunk's provider wants to be talked to.
ALTER TABLE trunks ADD COLUMN nickname TEXT;
ALTER TABLE trunks ADD COLUMN sip_trunk_type TEXT NOT NULL DEFAULT 'number';
ALTER TABLE trunks ADD COLUMN numbers JSONB NOT NULL DEFAULT '[]'; -- ranges, beside its own
ALTER TABLE trunks ADD COLUMN country_code TEXT NOT NULL DEFAULT ''; -- that of its number
ALTER TABLE trunks ADD COLUMN sip_calling_format TEXT NOT NULL DEFAULT '+e164';
ALTER TABLE trunks ADD COLUMN prefix TEXT NOT NULL DEFAULT '';
ALTER TABLE trunks ADD COLUMN from_user TEXT NOT NULL DEFAULT 'number';
ALTER TABLE trunks ADD COLUMN from_domain TEXT;
ALTER TABLE trunks ADD COLUMN contact_domain TEXT;
ALTER TABLE trunks ADD COLUMN user_phone BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE trunks ADD COLUMN identity_header TEXT NOT NULL DEFAULT 'pai';
ALTER TABLE trunks ADD COLUMN called_number_from JSONB NOT NULL DEFAULT '[]';
ALTER TABLE trunks ADD COLUMN inbound_hosts JSONB NOT NULL DEFAULT '[]';
ALTER TABLE trunks ADD COLUMN rtp_source TEXT; -- NULL: as the server does it
ALTER TABLE trunks ADD COLUMN options BOOLEAN NOT NULL DEFAULT TRUE;
ALTER TABLE trunks ADD COLUMN preset TEXT;
-- The trunk that has a number beside its own.
ALTER TABLE numbers ADD COLUMN trunk_id BIGINT REFERENCES trunks (id) ON DELETE CASCADE;
CREATE INDEX numbers_trunk ON numbers (trunk_id) WHERE trunk_id IS NOT NULL;
-- Extensions of telephone systems are no numbers: several systems have the same ones.
DROP INDEX numbers_owned;
CREATE UNIQUE INDEX numbers_owned ON numbers (phone_number, type) WHERE type <> 'caller_id' AND phone_number LIKE '+%';
CREATE INDEX numbers_phone ON numbers (phone_number);

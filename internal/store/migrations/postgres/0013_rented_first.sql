-- +goose Up
-- A number that the carrier rents out is the tenant's, whoever has said before that it was their trunk's: so a number is owned once in each way.
DROP INDEX numbers_owned;
CREATE UNIQUE INDEX numbers_owned ON numbers (phone_number, type) WHERE type <> 'caller_id';

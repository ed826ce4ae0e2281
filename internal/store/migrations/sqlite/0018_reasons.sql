-- +goose Up
-- What failed, in a sentence for its owner: in a call, and in the reply to a message.
ALTER TABLE calls ADD COLUMN ended_detail TEXT;
ALTER TABLE messages ADD COLUMN error TEXT;

-- +goose Up
-- What strangers may spend of an account: the widget's messages and calls from browsers, by UTC day. A reservation that counts knows its
-- day, so that what is given back is taken off there.
CREATE TABLE public_spend (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  day BIGINT NOT NULL,
  amount BIGINT NOT NULL,
  warned BOOLEAN NOT NULL DEFAULT FALSE,
  PRIMARY KEY (user_id, day)
);
CREATE INDEX public_spend_old ON public_spend (day);
ALTER TABLE reservations ADD COLUMN public_day BIGINT NOT NULL DEFAULT 0;

-- +goose Up
-- Second factors of sign-ins. A person is an account's owner (member_id 0) or one of its members.
CREATE TABLE two_factors (
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  member_id BIGINT NOT NULL,
  sealed_secret BYTEA NOT NULL,
  confirmed_at BIGINT NOT NULL, -- 0: set up, but no code was entered yet, so that it does not count
  last_step BIGINT NOT NULL, -- of the last code that was taken: it and those before are refused
  created_at BIGINT NOT NULL,
  PRIMARY KEY (user_id, member_id)
);
CREATE TABLE recovery_codes (
  user_id BIGINT NOT NULL,
  member_id BIGINT NOT NULL,
  hash BYTEA NOT NULL, -- SHA-256
  PRIMARY KEY (user_id, member_id, hash),
  FOREIGN KEY (user_id, member_id) REFERENCES two_factors (user_id, member_id) ON DELETE CASCADE
);

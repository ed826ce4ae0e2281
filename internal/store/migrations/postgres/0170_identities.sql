-- +goose Up
-- Who signs in by an OpenID Connect issuer: an account's owner (member_id 0) or one of its members.
CREATE TABLE identities (
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  member_id BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  PRIMARY KEY (issuer, subject)
);
CREATE UNIQUE INDEX identities_person ON identities (user_id, member_id, issuer);

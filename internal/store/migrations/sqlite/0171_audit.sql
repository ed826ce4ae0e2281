-- +goose Up
-- Who changed what in an account.
CREATE TABLE audit (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  created_at BIGINT NOT NULL,
  who TEXT NOT NULL, -- owner, member:ID, key:ID, invitation:ID, operator
  who_name TEXT NOT NULL,
  address TEXT NOT NULL,
  action TEXT NOT NULL,
  kind TEXT NOT NULL,
  thing_id TEXT NOT NULL,
  name TEXT NOT NULL,
  changes TEXT NOT NULL
);
CREATE INDEX audit_user ON audit (user_id, id);
CREATE INDEX audit_who ON audit (user_id, who, id);
CREATE INDEX audit_kind ON audit (user_id, kind, id);
CREATE INDEX audit_day ON audit (user_id, created_at);
CREATE INDEX audit_old ON audit (created_at);

-- +goose Up
-- The ledger is the truth about money; users.balance is its cached sum, written in the same transaction. (reason, reference) makes every
-- movement happen once, whatever is retried.
CREATE TABLE ledger (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  amount BIGINT NOT NULL,
  balance_after BIGINT NOT NULL CHECK (balance_after >= 0),
  reference TEXT NOT NULL,
  description TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  UNIQUE (user_id, kind, reference)
);
CREATE INDEX ledger_user ON ledger (user_id, id);
CREATE INDEX ledger_created ON ledger (user_id, created_at, id);

-- Money set aside for what is under way; it is still in the balance, and no longer free. A reservation whose owner died lapses.
CREATE TABLE reservations (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  user_id BIGINT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  reference TEXT NOT NULL,
  amount BIGINT NOT NULL CHECK (amount >= 0),
  expires_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  UNIQUE (user_id, reference)
);
CREATE INDEX reservations_expired ON reservations (expires_at);

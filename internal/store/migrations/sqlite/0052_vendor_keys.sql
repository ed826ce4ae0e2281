-- +goose Up
-- Keys of vendors that were entered in the product: the server's (user_id 0), and users' own. The row of a key that was removed stays,
-- without it: that is how other nodes learn of it.
CREATE TABLE vendor_keys (
  user_id BIGINT NOT NULL,
  vendor TEXT NOT NULL,
  sealed BLOB,
  hint TEXT NOT NULL,
  base_url TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT NOT NULL,
  checked_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  revision BIGINT NOT NULL,
  PRIMARY KEY (user_id, vendor)
);
CREATE INDEX vendor_keys_revision ON vendor_keys (revision);
-- The latest revision: each change takes the next one under the row's lock, so that they are seen in their order.
CREATE TABLE vendor_clock (
  id BIGINT PRIMARY KEY,
  revision BIGINT NOT NULL
);
INSERT INTO vendor_clock (id, revision) VALUES (1, 0);

package store

import (
	"context"
	"time"

	"github.com/uptrace/bun"

	"parley/internal/parley"
)

// SeeNode stores a process's sign of life, with what it says of itself, and sets SeenAt to the database's time.
func (tx *Tx) SeeNode(ctx context.Context, n *parley.Node) error {
	return tx.q.NewRaw(`INSERT INTO nodes (id, name, roles, version, live, leaving, started_at, seen_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET live = excluded.live, leaving = excluded.leaving, seen_at = excluded.seen_at RETURNING seen_at`,
		n.ID, n.Name, n.Roles, n.Version, n.Live, n.Leaving, tx.clock(), tx.clock()).Scan(ctx, &n.SeenAt)
}

// Nodes are the processes that were heard of within a time, by the database's clock.
func (q Query) Nodes(ctx context.Context, within time.Duration) (list []parley.Node, err error) {
	err = q.q.NewSelect().Model(&list).Where("seen_at >= (SELECT ?) - ?", q.clock(), within.Microseconds()).Order("id").Scan(ctx)
	return list, err
}

// RemoveNode removes a process that ends, with the trunks that it holds, and those that were not heard of for a time.
func (tx *Tx) RemoveNode(ctx context.Context, id string, silent time.Duration) error {
	if _, err := tx.q.NewRaw("DELETE FROM trunk_holders WHERE node = ?", id).Exec(ctx); err != nil {
		return err
	}
	_, err := tx.q.NewRaw("DELETE FROM nodes WHERE id = ? OR seen_at < (SELECT ?) - ?", id, tx.clock(), silent.Microseconds()).Exec(ctx)
	return err
}

// TrunkHolders are the trunks, of all users, that want a registration, and who holds it.
func (q Query) TrunkHolders(ctx context.Context) (list []parley.TrunkHolder, err error) {
	err = q.q.NewRaw(`SELECT t.id AS trunk_id, coalesce(h.node, '') AS node, coalesce(h.registered, FALSE) AS registered
		FROM trunks t LEFT JOIN trunk_holders h ON h.trunk_id = t.id WHERE t.register ORDER BY t.id`).Scan(ctx, &list)
	return list, err
}

// HoldTrunks makes a process the holder of trunks' registrations.
func (tx *Tx) HoldTrunks(ctx context.Context, node string, trunks []int64) error {
	if len(trunks) == 0 {
		return nil
	}
	_, err := tx.q.NewRaw(`INSERT INTO trunk_holders (trunk_id, node, registered) SELECT id, ?, FALSE FROM trunks WHERE id IN (?)
		ON CONFLICT (trunk_id) DO UPDATE SET node = excluded.node, registered = FALSE`, node, bun.List(trunks)).Exec(ctx)
	return err
}

// NoteRegistered stores with which of the trunks that a process holds it is registered.
func (tx *Tx) NoteRegistered(ctx context.Context, node string, registered bool, trunks []int64) error {
	_, err := tx.q.NewRaw("UPDATE trunk_holders SET registered = ? WHERE node = ? AND trunk_id IN (?)", registered, node,
		bun.List(trunks)).Exec(ctx)
	return err
}

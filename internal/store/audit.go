package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"parley/internal/parley"
)

// The audit log. Who makes the changes of a context is said once, by By. The methods of Tx that change what people
// decide on say what they change (note, drop); Write puts all that a transaction has said into the log as its last
// step, in one INSERT. So an entry stands exactly if its change does. What a change is compared with is a row that the
// transaction has read anyway (saw). Without somebody in the context, nothing is noted: the server's own work is no
// one's change.

// Actor is who makes the changes of a context.
type Actor struct {
	UserID  int64  // the account that they work in; 0 for the operator's commands
	Who     string // as entries of the audit log name them
	Name    string
	Address string
}

// Operator is who runs commands on the server.
var Operator = Actor{Who: "operator", Name: "Operator"}

type actorKey struct{}

// By is a context in which somebody changes things: the audit log, versions and drafts name them.
func By(ctx context.Context, a Actor) context.Context { return context.WithValue(ctx, actorKey{}, &a) }

// ActorOf is who makes the changes of a context, nil for nobody.
func ActorOf(ctx context.Context) *Actor {
	a, _ := ctx.Value(actorKey{}).(*Actor)
	return a
}

// Author is the name of who makes the changes of a context, "" for nobody.
func Author(ctx context.Context) string {
	if a := ActorOf(ctx); a != nil {
		return a.Name
	}
	return ""
}

// thing is a thing that a transaction has read.
type thing struct {
	kind parley.AuditKind
	id   string
}

// audited has what fn notes put into the audit log as the last step of its transaction.
func audited(fn func(context.Context, *Tx) error) func(context.Context, *Tx) error {
	return func(ctx context.Context, tx *Tx) error {
		tx.actor, tx.noted, tx.seen = ActorOf(ctx), nil, nil
		if err := fn(ctx, tx); err != nil || len(tx.noted) == 0 {
			return err
		}
		if _, err := tx.q.NewInsert().Model(&tx.noted).ExcludeColumn("id").Returning("NULL").Exec(ctx); err != nil {
			return err
		}
		return tx.meterChanges(ctx) // last: who waits for the account's row must not hold that of the count
	}
}

// tally are changes that were not counted to their account's day yet. They are counted many at once: a query for each change would cost
// more than the limit is worth. A process that ends forgets its part.
type tally struct {
	lot int64 // how many are counted at once

	mu sync.Mutex
	of map[int64]int64 // by account
}

// maxTallied is how many accounts have changes that were not counted.
const maxTallied = 100_000

func newTally() *tally { return &tally{lot: 100, of: map[int64]int64{}} }

// add adds changes of an account, and returns how many are to be counted now: none until there is a lot.
func (t *tally) add(userID, n int64) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.of) >= maxTallied {
		clear(t.of)
	}
	if n += t.of[userID]; n < t.lot {
		t.of[userID] = n
		return 0
	}
	delete(t.of, userID)
	return n
}

// meterChanges counts what a transaction has noted to its account's day, and refuses more than the limit. Deletions, and what is about
// people and their access, go on until twice as much: whoever fills the log can still be shut out. The operator's commands have no
// limit.
func (tx *Tx) meterChanges(ctx context.Context) error {
	row, userID, urgent := parley.LimitNamed("changes"), tx.noted[0].UserID, true
	if tx.actor.UserID == 0 {
		return nil
	}
	for _, e := range tx.noted {
		urgent = urgent && (e.Action == parley.AuditDeleted || slices.Contains(ofAccess, e.Kind))
	}
	lot := tx.tally.add(userID, int64(len(tx.noted)))
	if lot == 0 {
		return nil
	}
	n, err := tx.count(ctx, userID, row, lot, parley.Now())
	if err != nil {
		return err
	}
	if n > row.Most && !urgent || n > 2*row.Most {
		tx.tally.add(userID, lot-int64(len(tx.noted))) // the next change is judged as well
		return row.Refuse(row.Most, 0)
	}
	return nil
}

// ofAccess are the kinds that are about who may do what in an account.
var ofAccess = []parley.AuditKind{parley.AuditAccount, parley.AuditKey, parley.AuditMember, parley.AuditInvitation, parley.AuditTwoFactor}

// saw remembers how a thing is before it is changed. It passes on the error of reading it.
func (tx *Tx) saw(kind parley.AuditKind, id any, t any, err error) error {
	if tx.actor == nil || err != nil {
		return err
	}
	if tx.seen == nil {
		tx.seen = map[thing]parley.AuditView{}
	}
	tx.seen[thing{kind, fmt.Sprint(id)}] = parley.AuditViewOf(t)
	return nil
}

// note notes a change of a thing of the user's, unless err says that there was none, and passes that on. to is the
// thing as it is from now on; nil where nothing is to be compared.
func (tx *Tx) note(userID int64, action parley.AuditAction, kind parley.AuditKind, id any, to any, err error) error {
	if tx.actor == nil || err != nil {
		return err
	}
	key := thing{kind, fmt.Sprint(id)}
	was, is := tx.seen[key], parley.AuditView(nil)
	if to != nil {
		is = parley.AuditViewOf(to)
	}
	changes := []parley.AuditChange{}
	if was != nil && is != nil {
		changes = parley.AuditChanges(was, is, ofCustomer[kind])
	}
	name := is.Name()
	if name == "" {
		name = was.Name()
	}
	tx.enter(userID, action, key, name, changes)
	return nil
}

// ofCustomer are the kinds whose names and values are about customers, whose data can be erased.
var ofCustomer = map[parley.AuditKind]bool{parley.AuditLead: true, parley.AuditCustomer: true, parley.AuditBlacklist: true,
	parley.AuditCall: true, parley.AuditConversation: true}

// enter adds an entry to those of the transaction.
func (tx *Tx) enter(userID int64, action parley.AuditAction, of thing, name string, changes []parley.AuditChange) {
	if tx.actor == nil {
		return
	}
	if userID == 0 { // of the server
		userID = tx.actor.UserID
	}
	if ofCustomer[of.kind] {
		name = ""
	}
	tx.noted = append(tx.noted, parley.AuditEntry{UserID: userID, CreatedAt: parley.Now(), Who: tx.actor.Who,
		WhoName: tx.actor.Name, Address: tx.actor.Address, Action: action, Kind: of.kind, ThingID: of.id, Name: name, Changes: changes})
}

// changed notes a change of some fields, by name, of a thing that has a name or none.
func (tx *Tx) changed(userID int64, kind parley.AuditKind, id any, name string, err error, fields ...string) error {
	if err == nil {
		changes := []parley.AuditChange{}
		for _, f := range fields {
			changes = append(changes, parley.AuditChange{Field: f})
		}
		tx.enter(userID, parley.AuditChanged, thing{kind, fmt.Sprint(id)}, name, changes)
	}
	return err
}

// drop removes a thing by a statement that returns its name, and notes that. What is not there is missing.
func (tx *Tx) drop(ctx context.Context, userID int64, kind parley.AuditKind, id any, missing, statement string, args ...any) error {
	var name string
	if err := tx.q.NewRaw(statement, args...).Scan(ctx, &name); err != nil {
		return notFound(err, missing)
	}
	tx.enter(userID, parley.AuditDeleted, thing{kind, fmt.Sprint(id)}, name, []parley.AuditChange{})
	return nil
}

// person names a person of an account in the log: a member by their id, the account's owner by none.
func person(memberID int64) string {
	if memberID == parley.Owner {
		return ""
	}
	return strconv.FormatInt(memberID, 10)
}

// AuditFilter narrows the audit log. Zero values don't.
type AuditFilter struct {
	Who      string
	Kind     parley.AuditKind
	From, To parley.Time // To is exclusive
}

// Audit is a page of who changed what in the user's account, newest first.
func (q Query) Audit(ctx context.Context, userID int64, f AuditFilter, p Page) (list []parley.AuditEntry, total int, err error) {
	list = []parley.AuditEntry{}
	s := q.q.NewSelect().Model(&list).Where("user_id = ?", userID)
	only(s, "who", f.Who)
	only(s, "kind", f.Kind)
	between(s, f.From, f.To)
	total, err = page(ctx, s, p, "id DESC")
	return list, total, err
}

// AuditNames are those who have changed something in the user's account, with the name that each had last.
func (q Query) AuditNames(ctx context.Context, userID int64) (list []parley.AuditEntry, err error) {
	err = q.q.NewRaw(`SELECT who, who_name FROM audit WHERE id IN (
		SELECT max(id) FROM audit WHERE user_id = ? GROUP BY who) ORDER BY who_name, who LIMIT 200`, userID).Scan(ctx, &list)
	return list, err
}

// ForgetAudit removes entries of the audit log from before a time. One step of it, that says whether there is more.
func (tx *Tx) ForgetAudit(ctx context.Context, before parley.Time) (more bool, err error) {
	n, err := count(tx.q.NewRaw("DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE created_at < ? LIMIT ?)", before,
		Step).Exec(ctx))
	return n == Step, err
}

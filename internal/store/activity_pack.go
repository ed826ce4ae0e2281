package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"parley/internal/parley"
)

// How activity is packed into a row, and read again.

// span is how many quarters of an hour a row has.
const span = 24

// activity are the counts of one user and span.
type activity struct {
	names []string
	cells []cell
}

// cell are the counts of one key, by their names' places.
type cell struct {
	key    parley.ActivityKey
	counts []named
}

type named struct {
	name int
	n    int64
}

func compareKeys(a, b parley.ActivityKey) int {
	return cmp.Or(cmp.Compare(a.Quarter, b.Quarter), cmp.Compare(a.AssistantID, b.AssistantID),
		cmp.Compare(a.NumberID, b.NumberID), cmp.Compare(a.CampaignID, b.CampaignID), cmp.Compare(a.Channel, b.Channel))
}

// place is a name's place; a new one gets its own.
func (a *activity) place(name string) int {
	if i := slices.Index(a.names, name); i >= 0 {
		return i
	}
	a.names = append(a.names, name)
	return len(a.names) - 1
}

// add adds counts to a key's.
func (a *activity) add(k parley.ActivityKey, counts parley.Counts) {
	at, ok := slices.BinarySearchFunc(a.cells, k, func(c cell, k parley.ActivityKey) int { return compareKeys(c.key, k) })
	if !ok {
		a.cells = slices.Insert(a.cells, at, cell{key: k})
	}
	c := &a.cells[at]
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		i := a.place(name)
		if at := slices.IndexFunc(c.counts, func(n named) bool { return n.name == i }); at >= 0 {
			c.counts[at].n += counts[name]
		} else if counts[name] != 0 {
			c.counts = append(c.counts[:len(c.counts):len(c.counts)], named{i, counts[name]})
		}
	}
}

// packed is the first byte of a row: how the rest is to be read.
const packed = 1

// pack writes the counts: the names, then each cell with its key and its counts, all numbers as varints.
func (a *activity) pack() []byte {
	b := binary.AppendUvarint([]byte{packed}, uint64(len(a.names)))
	for _, name := range a.names {
		b = append(binary.AppendUvarint(b, uint64(len(name))), name...)
	}
	b = binary.AppendUvarint(b, uint64(len(a.cells)))
	for _, c := range a.cells {
		b = append(binary.AppendUvarint(b, uint64(len(c.key.Channel))), c.key.Channel...)
		for _, n := range []int64{c.key.Quarter, c.key.AssistantID, c.key.NumberID, c.key.CampaignID, int64(len(c.counts))} {
			b = binary.AppendVarint(b, n)
		}
		for _, n := range c.counts {
			b = binary.AppendVarint(binary.AppendUvarint(b, uint64(n.name)), n.n)
		}
	}
	return b
}

var errPack = errors.New("activity that can't be read")

// reader reads varints and texts. After an error it reads zeros.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n int) {
	if n <= 0 {
		r.b, r.err = nil, errPack
		return
	}
	r.b = r.b[n:]
}

func (r *reader) uvarint() int {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := r.b[0]
		r.b = r.b[1:]
		return int(v)
	}
	v, n := binary.Uvarint(r.b)
	r.take(n)
	return int(v)
}

func (r *reader) varint() int64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := int64(r.b[0])
		r.b = r.b[1:]
		return v>>1 ^ -(v & 1)
	}
	v, n := binary.Varint(r.b)
	r.take(n)
	return v
}

// text is a text that was written with its length, as it stands in what is read.
func (r *reader) text() []byte {
	n := r.uvarint()
	if n < 0 || n > len(r.b) {
		r.take(0)
		return nil
	}
	t := r.b[:n]
	r.b = r.b[n:]
	return t
}

// openPack reads the beginning of what pack wrote: the names, as text makes them, and how many cells follow.
func openPack(b []byte, text func([]byte) string) (r *reader, names []string, cells int, err error) {
	r = &reader{b: b}
	if len(b) == 0 {
		return r, nil, 0, nil
	}
	if b[0] != packed {
		return nil, nil, 0, errPack
	}
	r.b = b[1:]
	for n := r.uvarint(); n > 0 && r.err == nil; n-- {
		names = append(names, text(r.text()))
	}
	return r, names, r.uvarint(), r.err
}

// key reads the next cell's key, and how many counts it has.
func (r *reader) key(k *parley.ActivityKey) (counts int64) {
	if t := r.text(); string(t) != k.Channel { // the same one again takes no new memory
		k.Channel = string(t)
	}
	k.Quarter, k.AssistantID, k.NumberID, k.CampaignID = r.varint(), r.varint(), r.varint(), r.varint()
	return r.varint()
}

// unpack reads what pack wrote.
func unpack(b []byte) (*activity, error) {
	r, names, cells, err := openPack(b, func(t []byte) string { return string(t) })
	if err != nil {
		return nil, err
	}
	a := &activity{names: names, cells: make([]cell, 0, max(0, min(cells, len(b))))}
	arena := make([]named, 0, len(b)/3)
	for k := (parley.ActivityKey{}); cells > 0 && r.err == nil; cells-- {
		from := len(arena)
		for n := r.key(&k); n > 0 && r.err == nil; n-- {
			count := named{r.uvarint(), r.varint()}
			if count.name < 0 || count.name >= len(names) {
				return nil, errPack
			}
			arena = append(arena, count)
		}
		a.cells = append(a.cells, cell{k, arena[from:len(arena):len(arena)]})
	}
	return a, r.err
}

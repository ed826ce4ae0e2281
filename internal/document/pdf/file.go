package pdf

import (
	"bytes"
	"errors"
	"slices"
)

// Bounds that no honest file comes near.
const (
	maxObjects  = 4 << 20 // objects of a file
	maxInflated = 2 << 30 // bytes inflated in all
	maxRefs     = 32      // references to references
)

var errTooMuch = errors.New("the file holds more data than a text needs")

// file is a PDF file's objects. They are read when they are asked for, and kept.
type file struct {
	b        []byte
	xref     map[int]place
	trailer  dict
	objects  map[int]any
	loading  map[int]bool
	packs    map[int]*pack
	crypt    *crypt
	inflated int
	rebuilt  bool
}

// place is where an object is: at an offset in the file, or the index-th in an object stream.
type place struct{ offset, pack, index int }

// pack is an object stream (7.5.7), decoded.
type pack struct {
	data    []byte
	nums    []int
	offsets []int
}

// open finds the objects by the file's cross-reference table, or, when that makes no sense, by looking for them.
func open(b []byte) (*file, error) {
	head := bytes.Index(b[:min(len(b), 1024)], []byte("%PDF-"))
	if head < 0 {
		return nil, ErrNotPDF
	}
	f := &file{b: b[head:]}
	f.reset()
	if !f.readXref() || !f.sound() {
		f.rebuild()
		if !f.sound() {
			return nil, ErrBroken
		}
	}
	return f, nil
}

func (f *file) reset() {
	f.xref, f.trailer = map[int]place{}, dict{}
	f.objects, f.loading, f.packs, f.crypt = map[int]any{}, map[int]bool{}, map[int]*pack{}, nil
}

// sound says whether the table leads to pages, which is what this is all about.
func (f *file) sound() bool {
	if f.trailer["Encrypt"] != nil && f.crypt == nil { // strings and streams can be read from here on
		f.crypt = newCrypt(f)
		f.objects, f.packs = map[int]any{}, map[int]*pack{}
		if f.crypt.err != nil {
			return true // nothing more can be seen; the caller asks
		}
	}
	pages := f.dict(f.dict(f.trailer["Root"])["Pages"])
	return pages["Kids"] != nil || pages["Type"] == name("Page")
}

// get follows references.
func (f *file) get(v any) any {
	for range maxRefs {
		r, ok := v.(ref)
		if !ok {
			return v
		}
		v = f.load(r.num)
	}
	return nil
}

func (f *file) dict(v any) dict {
	switch v := f.get(v).(type) {
	case dict:
		return v
	case stream:
		return v.dict
	}
	return nil
}

func (f *file) array(v any) array   { a, _ := f.get(v).(array); return a }
func (f *file) name(v any) name     { n, _ := f.get(v).(name); return n }
func (f *file) int(v any) int       { return int(f.float(v)) }
func (f *file) text(v any) string   { s, _ := f.get(v).(string); return s }
func (f *file) float(v any) float64 { return float(f.get(v)) }

func float(v any) float64 {
	switch v := v.(type) {
	case int:
		return float64(v)
	case float64:
		if v > 1e9 || v < -1e9 {
			return 0
		}
		return v
	}
	return 0
}

// load reads an object by its number.
func (f *file) load(num int) any {
	if v, ok := f.objects[num]; ok {
		return v
	}
	p, ok := f.xref[num]
	if !ok || f.loading[num] {
		return nil
	}
	f.loading[num] = true
	defer delete(f.loading, num)
	var v any
	if p.pack > 0 {
		v = f.unpack(num, p)
	} else if v, ok = f.parse(p.offset, num); !ok && !f.rebuilt && f.crypt == nil {
		// The table lies about this one. Where it lies once, it does so again.
		f.rebuild()
		return f.load(num)
	}
	f.objects[num] = v
	return v
}

// parse reads "num gen obj …" at an offset.
func (f *file) parse(offset, num int) (any, bool) {
	if offset < 0 || offset >= len(f.b) {
		return nil, false
	}
	l := &lexer{b: f.b, i: offset}
	n, ok := l.token().(int)
	gen, ok2 := l.token().(int)
	if !ok || !ok2 || n != num && num >= 0 || l.token() != keyword("obj") {
		return nil, false
	}
	r := ref{n, gen}
	v := l.object(0)
	d, isDict := v.(dict)
	if isDict {
		after := l.i
		if l.token() == keyword("stream") {
			length := -1
			if x, ok := f.get(d["Length"]).(int); ok {
				length = x
			}
			s := stream{d, l.body(length), r}
			if f.crypt != nil {
				s.dict, s.raw = f.crypt.object(d, r).(dict), f.crypt.stream(s)
			}
			return s, true
		}
		l.i = after
	}
	if f.crypt != nil {
		v = f.crypt.object(v, r)
	}
	if k, ok := v.(keyword); ok && k != end { // "endobj": empty
		v = nil
	}
	return v, true
}

// unpack reads an object out of an object stream.
func (f *file) unpack(num int, p place) any {
	k := f.pack(p.pack)
	if k == nil {
		return nil
	}
	i := p.index
	if i < 0 || i >= len(k.nums) || k.nums[i] != num {
		if i = slices.Index(k.nums, num); i < 0 {
			return nil
		}
	}
	if k.offsets[i] < 0 || k.offsets[i] >= len(k.data) {
		return nil
	}
	v := (&lexer{b: k.data, i: k.offsets[i]}).object(0)
	if _, ok := v.(keyword); ok {
		return nil
	}
	return v
}

func (f *file) pack(num int) *pack {
	if k, ok := f.packs[num]; ok {
		return k
	}
	f.packs[num] = nil
	s, ok := f.load(num).(stream)
	if !ok {
		return nil
	}
	data, err := f.decode(s)
	if err != nil {
		return nil
	}
	k, l, first := &pack{data: data}, &lexer{b: data}, f.int(s.dict["First"])
	for range min(f.int(s.dict["N"]), len(data)) {
		num, ok := l.token().(int)
		off, ok2 := l.token().(int)
		if !ok || !ok2 {
			break
		}
		k.nums, k.offsets = append(k.nums, num), append(k.offsets, first+off)
	}
	f.packs[num] = k
	return k
}

package pdf

import "bytes"

// readXref reads the chain of cross-reference tables and streams (7.5.4, 7.5.8) from the file's end.
func (f *file) readXref() bool {
	tail := max(0, len(f.b)-2048)
	i := bytes.LastIndex(f.b[tail:], []byte("startxref"))
	if i < 0 {
		return false
	}
	l := &lexer{b: f.b, i: tail + i + len("startxref")}
	start, ok := l.token().(int)
	seen := map[int]bool{}
	for queue := []int{start}; ok && len(queue) > 0; {
		at := queue[0]
		queue = queue[1:]
		if at < 0 || at >= len(f.b) || seen[at] {
			continue
		}
		seen[at] = true
		var t dict
		if t, ok = f.readSection(at); !ok {
			return false
		}
		for k, v := range t {
			if _, there := f.trailer[k]; !there {
				f.trailer[k] = v
			}
		}
		for _, key := range []name{"XRefStm", "Prev"} { // a hybrid file's stream goes before the older table
			if prev, ok := t[key].(int); ok {
				queue = append(queue, prev)
			}
		}
	}
	return ok && len(f.xref) > 0 && f.trailer["Root"] != nil
}

// readSection reads one table or stream; what newer sections said stays.
func (f *file) readSection(at int) (dict, bool) {
	l := &lexer{b: f.b, i: at}
	if l.token() != keyword("xref") {
		v, ok := f.parse(at, -1)
		s, isStream := v.(stream)
		return s.dict, ok && isStream && f.readXrefStream(s)
	}
	for {
		tok := l.token()
		if tok == keyword("trailer") {
			t, ok := l.object(0).(dict)
			return t, ok
		}
		start, ok := tok.(int)
		n, ok2 := l.token().(int)
		if !ok || !ok2 {
			return nil, false
		}
		for i := range n {
			off, ok := l.token().(int)
			_, ok2 := l.token().(int)
			kind := l.token()
			if !ok || !ok2 || kind != keyword("n") && kind != keyword("f") || len(f.xref) > maxObjects {
				return nil, false
			}
			if kind == keyword("n") && off > 0 {
				f.place(start+i, place{offset: off})
			}
		}
	}
}

func (f *file) place(num int, p place) {
	if _, there := f.xref[num]; !there {
		f.xref[num] = p
	}
}

func (f *file) readXrefStream(s stream) bool {
	data, err := f.decode(s)
	w := f.array(s.dict["W"])
	if err != nil || len(w) < 3 {
		return false
	}
	var width [3]int
	total := 0
	for i := range width {
		width[i] = f.int(w[i])
		if width[i] < 0 || width[i] > 8 {
			return false
		}
		total += width[i]
	}
	index := f.array(s.dict["Index"])
	if index == nil {
		index = array{0, f.int(s.dict["Size"])}
	}
	for k := 0; k+1 < len(index) && total > 0; k += 2 {
		start := f.int(index[k])
		for i := 0; i < f.int(index[k+1]) && len(data) >= total && len(f.xref) < maxObjects; i++ {
			field := [3]int{1, 0, 0} // where no type is written, it is 1
			for j, n := range width {
				if n > 0 {
					field[j] = 0
				}
				for range n {
					field[j] = field[j]<<8 | int(data[0])
					data = data[1:]
				}
			}
			switch field[0] {
			case 1:
				f.place(start+i, place{offset: field[1]})
			case 2:
				f.place(start+i, place{pack: field[1], index: field[2]})
			}
		}
	}
	return true
}

// rebuild finds the objects of a damaged file by looking for "12 0 obj" all over it. The last of a number is the one
// that counts.
func (f *file) rebuild() {
	trailer := f.trailer
	f.reset()
	f.rebuilt = true
	var streams []int
	for i := 0; ; i += len("obj") {
		k := bytes.Index(f.b[i:], []byte("obj"))
		if k < 0 || len(f.xref) > maxObjects {
			break
		}
		i += k
		if at, num, ok := header(f.b, i); ok {
			f.xref[num] = place{offset: at}
			streams = append(streams, num)
		}
	}
	for i := 0; ; {
		k := bytes.Index(f.b[i:], []byte("trailer"))
		if k < 0 {
			break
		}
		i += k + len("trailer")
		if t, ok := (&lexer{b: f.b, i: i}).object(0).(dict); ok {
			for key, v := range t {
				f.trailer[key] = v
			}
		}
	}
	f.rebuildStreams(streams, trailer)
}

// rebuildStreams takes what the found objects tell: cross-reference streams hold the trailer, object streams more
// objects.
func (f *file) rebuildStreams(nums []int, before dict) {
	var packs []int
	for _, num := range nums {
		l := &lexer{b: f.b, i: f.xref[num].offset}
		l.token()
		l.token()
		l.token()
		d, ok := l.object(0).(dict)
		if !ok {
			continue
		}
		switch d["Type"] {
		case name("Catalog"):
			if f.trailer["Root"] == nil {
				f.trailer["Root"] = ref{num, 0}
			}
		case name("XRef"):
			for _, key := range []name{"Root", "Info", "Encrypt", "ID"} {
				if d[key] != nil {
					f.trailer[key] = d[key]
				}
			}
		case name("ObjStm"):
			packs = append(packs, num)
		}
	}
	if f.trailer["Encrypt"] == nil && before["Encrypt"] != nil {
		f.trailer["Encrypt"], f.trailer["ID"] = before["Encrypt"], before["ID"]
	}
	if f.trailer["Encrypt"] != nil {
		f.crypt = newCrypt(f)
		f.objects = map[int]any{}
		if f.crypt.err != nil {
			return
		}
	}
	for _, num := range packs {
		k := f.pack(num)
		if k == nil {
			continue
		}
		for i, n := range k.nums {
			f.place(n, place{pack: num, index: i})
			if f.trailer["Root"] == nil && f.dict(ref{n, 0})["Type"] == name("Catalog") {
				f.trailer["Root"] = ref{n, 0}
			}
		}
	}
}

// header looks back from an "obj" for the two numbers before it.
func header(b []byte, i int) (at, num int, ok bool) {
	back := func(i int) (start, n int) {
		for i > 0 && class[b[i-1]] == 1 {
			i--
		}
		stop := i
		for i > 0 && stop-i < 10 && b[i-1] >= '0' && b[i-1] <= '9' {
			i--
		}
		if i == stop {
			return -1, 0
		}
		n, _ = integer(b[i:stop])
		return i, n
	}
	gen, _ := back(i)
	if gen <= 0 || class[b[gen-1]] != 1 {
		return 0, 0, false
	}
	at, num = back(gen)
	return at, num, at >= 0 && num > 0
}

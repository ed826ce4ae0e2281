package pdf

import (
	"bytes"
	"compress/zlib"
	"encoding/ascii85"
	"errors"
	"io"
)

// maxStream bounds a decoded stream, in bytes. A page's content and a font's tables are far smaller.
const maxStream = 64 << 20

var errFilter = errors.New("a stream is encoded in a way that holds no text")

// decode undoes a stream's filters. After an error it returns what it could decode, and no error: files are cut off and
// damaged in ways that other readers forgive.
func (f *file) decode(s stream) ([]byte, error) {
	data := s.raw
	filters, params := f.list(s.dict["Filter"]), f.list(s.dict["DecodeParms"])
	if len(filters) > 8 {
		return nil, errFilter
	}
	for i, v := range filters {
		var p dict
		if i < len(params) {
			p = f.dict(params[i])
		}
		var err error
		if data, err = f.filter(f.name(v), p, data); err != nil {
			return nil, err
		}
		if f.inflated += len(data); f.inflated > maxInflated {
			return nil, errTooMuch
		}
	}
	return data, nil
}

// list is an array's elements, or the one object that may stand for an array of one.
func (f *file) list(v any) array {
	switch v := f.get(v).(type) {
	case nil:
		return nil
	case array:
		return v
	default:
		return array{v}
	}
}

func (f *file) filter(kind name, p dict, data []byte) ([]byte, error) {
	switch kind {
	case "FlateDecode", "Fl":
		z, err := zlib.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, nil
		}
		out, _ := io.ReadAll(io.LimitReader(z, maxStream))
		return f.predict(p, out)
	case "LZWDecode", "LZW":
		early := 1
		if v, ok := f.get(p["EarlyChange"]).(int); ok {
			early = v
		}
		return f.predict(p, unlzw(data, early))
	case "ASCII85Decode", "A85":
		if i := bytes.IndexByte(data, '~'); i >= 0 {
			data = data[:i]
		}
		out, _ := io.ReadAll(io.LimitReader(ascii85.NewDecoder(bytes.NewReader(data)), maxStream))
		return out, nil
	case "ASCIIHexDecode", "AHx":
		return []byte((&lexer{b: data}).hex()), nil
	case "RunLengthDecode", "RL":
		return unrun(data), nil
	case "Crypt":
		return data, nil
	}
	return nil, errFilter
}

// predict undoes the differences between rows (ISO 32000-1, 7.4.4.4; PNG's filters).
func (f *file) predict(p dict, data []byte) ([]byte, error) {
	predictor, _ := f.get(p["Predictor"]).(int)
	if predictor < 2 {
		return data, nil
	}
	get := func(key name, def int) int {
		if v, ok := f.get(p[key]).(int); ok && v > 0 && v < 1<<20 {
			return v
		}
		return def
	}
	bits := get("Colors", 1) * get("BitsPerComponent", 8)
	pixel, row := max(1, bits/8), (bits*get("Columns", 1)+7)/8
	if bits > 1<<10 || row > 1<<24 || predictor < 10 { // TIFF's predictor is for images
		return nil, errFilter
	}
	out, above := make([]byte, 0, len(data)), make([]byte, row)
	for len(data) > 1 {
		kind, line := data[0], data[1:min(1+row, len(data))]
		data = data[1+len(line):]
		for i := range line {
			var left, corner byte
			if i >= pixel {
				left, corner = line[i-pixel], above[i-pixel]
			}
			switch kind {
			case 1:
				line[i] += left
			case 2:
				line[i] += above[i]
			case 3:
				line[i] += byte((int(left) + int(above[i])) / 2)
			case 4:
				line[i] += paeth(left, above[i], corner)
			}
		}
		out = append(out, line...)
		copy(above, line)
	}
	return out, nil
}

func paeth(a, b, c byte) byte {
	p := int(a) + int(b) - int(c)
	pa, pb, pc := abs(p-int(a)), abs(p-int(b)), abs(p-int(c))
	if pa <= pb && pa <= pc {
		return a
	}
	if pb <= pc {
		return b
	}
	return c
}

func abs(x int) int { return max(x, -x) }

// unlzw decodes LZW as PDF and TIFF have it: most significant bit first, codes from 9 to 12 bits, 256 clears, 257 ends.
func unlzw(data []byte, early int) []byte {
	type entry struct {
		prefix int
		last   byte
		length int
	}
	table := make([]entry, 258, 4097)
	for i := range 256 {
		table[i] = entry{-1, byte(i), 1}
	}
	var out []byte
	acc, bits, width, prev := 0, 0, 9, -1
	for _, c := range data {
		acc, bits = acc<<8|int(c), bits+8
		if bits < width {
			continue
		}
		bits -= width
		code := acc >> bits
		acc &= 1<<bits - 1
		switch {
		case code == 256:
			table, width, prev = table[:258], 9, -1
			continue
		case code == 257, code > len(table), code == len(table) && prev < 0, len(out) > maxStream:
			return out
		}
		if prev >= 0 && len(table) < 4096 {
			first := code
			if code == len(table) {
				first = prev
			}
			for table[first].prefix >= 0 {
				first = table[first].prefix
			}
			table = append(table, entry{prev, table[first].last, table[prev].length + 1})
		} else if code >= len(table) {
			return out
		}
		e := table[code]
		start := len(out)
		out = append(out, make([]byte, e.length)...)
		for i := start + e.length - 1; i >= start; i-- {
			out[i] = e.last
			if e.prefix >= 0 {
				e = table[e.prefix]
			}
		}
		prev = code
		if len(table)+early >= 1<<width && width < 12 {
			width++
		}
	}
	return out
}

func unrun(data []byte) []byte {
	var out []byte
	for len(data) > 1 && data[0] != 128 && len(out) < maxStream {
		n := int(data[0])
		if n < 128 {
			n = min(n+1, len(data)-1)
			out = append(out, data[1:1+n]...)
			data = data[1+n:]
		} else {
			out = append(out, bytes.Repeat(data[1:2], 257-n)...)
			data = data[2:]
		}
	}
	return out
}

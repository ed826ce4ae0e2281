package pdf

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5"
	"crypto/rc4"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
)

// crypt decrypts what the standard security handler encrypted with an empty user password (7.6): files that anybody
// may open, but not change or print. A file that asks for a password has err set.
type crypt struct {
	key  []byte
	kind name // V2 (RC4), AESV2, AESV3 or Identity
	err  error
}

var pad = []byte(
	"\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A")

func newCrypt(f *file) *crypt {
	f.crypt = nil // the dictionary itself is not encrypted
	e := f.dict(f.trailer["Encrypt"])
	v, r := f.int(e["V"]), f.int(e["R"])
	o, u := f.text(e["O"]), f.text(e["U"])
	c := &crypt{err: ErrPassword, kind: "V2"}
	if f.name(e["Filter"]) != "Standard" {
		return c
	}
	if v >= 4 {
		filter := f.dict(f.dict(e["CF"])[f.name(e["StmF"])])
		if c.kind = f.name(filter["CFM"]); c.kind == "" || c.kind == "None" {
			c.kind = "Identity"
		}
	}
	if v == 5 {
		c.key = key256(r, u, f.text(e["UE"]))
	} else if len(o) >= 32 && len(u) >= 16 {
		n := 5
		if bits := f.int(e["Length"]); v > 1 && bits >= 40 && bits <= 128 {
			n = bits / 8
		}
		if v == 4 {
			n = 16
		}
		var id string
		if ids := f.array(f.trailer["ID"]); len(ids) > 0 {
			id = f.text(ids[0])
		}
		open := f.get(e["EncryptMetadata"]) == false
		c.key = key128(r, n, []byte(o)[:32], []byte(u), uint32(int64(f.float64(e["P"]))), []byte(id), open)
	}
	if c.key != nil {
		c.err = nil
	}
	return c
}

// float64 is a number of any size: permissions are written as unsigned ones too.
func (f *file) float64(v any) float64 {
	switch v := f.get(v).(type) {
	case int:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// key128 is algorithm 2 with an empty password, checked by algorithms 4 and 5; nil when the password is another.
func key128(r, n int, o, u []byte, p uint32, id []byte, open bool) []byte {
	h := md5.New()
	h.Write(pad)
	h.Write(o)
	h.Write(binary.LittleEndian.AppendUint32(nil, p))
	h.Write(id)
	if r >= 4 && open {
		h.Write([]byte{255, 255, 255, 255})
	}
	key := h.Sum(nil)
	if r >= 3 {
		for range 50 {
			s := md5.Sum(key[:n])
			key = s[:]
		}
	}
	key = key[:n]
	if r < 3 {
		if want := rc4ed(key, pad); len(u) < 32 || !bytes.Equal(want, u[:32]) {
			return nil
		}
		return key
	}
	s := md5.Sum(append(bytes.Clone(pad), id...))
	want := s[:]
	for i := range 20 {
		k := bytes.Clone(key)
		for j := range k {
			k[j] ^= byte(i)
		}
		want = rc4ed(k, want)
	}
	if !bytes.Equal(want, u[:16]) {
		return nil
	}
	return key
}

func rc4ed(key, data []byte) []byte {
	c, err := rc4.NewCipher(key)
	if err != nil {
		return nil
	}
	out := make([]byte, len(data))
	c.XORKeyStream(out, data)
	return out
}

// key256 is algorithm 2.A of ISO 32000-2 with an empty password.
func key256(r int, u, ue string) []byte {
	if len(u) < 48 || len(ue) < 32 {
		return nil
	}
	hash := func(salt string) []byte {
		s := sha256.Sum256([]byte(salt))
		if r < 6 {
			return s[:]
		}
		return hash2B(s[:])
	}
	if !bytes.Equal(hash(u[32:40]), []byte(u[:32])) {
		return nil
	}
	block, err := aes.NewCipher(hash(u[40:48]))
	if err != nil {
		return nil
	}
	key := make([]byte, 32)
	cipher.NewCBCDecrypter(block, make([]byte, 16)).CryptBlocks(key, []byte(ue[:32]))
	return key
}

// hash2B is algorithm 2.B for an empty password.
func hash2B(k []byte) []byte {
	for i := 0; ; i++ {
		k1 := bytes.Repeat(k, 64)
		block, err := aes.NewCipher(k[:16])
		if err != nil {
			return nil
		}
		cipher.NewCBCEncrypter(block, k[16:32]).CryptBlocks(k1, k1)
		mod := 0
		for _, c := range k1[:16] {
			mod += int(c)
		}
		switch mod % 3 {
		case 0:
			s := sha256.Sum256(k1)
			k = s[:]
		case 1:
			s := sha512.Sum384(k1)
			k = s[:]
		case 2:
			s := sha512.Sum512(k1)
			k = s[:]
		}
		if i >= 63 && int(k1[len(k1)-1]) <= i-32 {
			return k[:32]
		}
	}
}

// object decrypts the strings in an object.
func (c *crypt) object(v any, r ref) any {
	switch v := v.(type) {
	case string:
		return string(c.bytes([]byte(v), r))
	case array:
		for i := range v {
			v[i] = c.object(v[i], r)
		}
	case dict:
		for k := range v {
			v[k] = c.object(v[k], r)
		}
	}
	return v
}

func (c *crypt) stream(s stream) []byte {
	if t := s.dict["Type"]; t == name("XRef") {
		return s.raw
	}
	return c.bytes(s.raw, s.ref)
}

func (c *crypt) bytes(data []byte, r ref) []byte {
	if c.err != nil || c.kind == "Identity" {
		return data
	}
	key := c.key
	if c.kind != "AESV3" { // algorithm 1
		salt := append(bytes.Clone(key), byte(r.num), byte(r.num>>8), byte(r.num>>16), byte(r.gen), byte(r.gen>>8))
		if c.kind == "AESV2" {
			salt = append(salt, "sAlT"...)
		}
		s := md5.Sum(salt)
		key = s[:min(len(key)+5, 16)]
	}
	if c.kind == "V2" {
		return rc4ed(key, data)
	}
	n := len(data) &^ 15
	block, err := aes.NewCipher(key)
	if err != nil || n < 32 {
		return nil
	}
	out := make([]byte, n-16)
	cipher.NewCBCDecrypter(block, data[:16]).CryptBlocks(out, data[16:n])
	if k := int(out[len(out)-1]); k >= 1 && k <= 16 {
		out = out[:len(out)-k]
	}
	return out
}

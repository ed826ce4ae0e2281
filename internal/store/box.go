package store

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
)

// box encrypts what must be readable again but not in a stolen database: tool headers, SIP passwords, webhook secrets.
// AES-256-GCM with a random nonce in front; `what` is bound in, so that a sealed value can't be moved to another place.
type box struct{ aead cipher.AEAD }

func newBox(secret []byte) (box, error) {
	if len(secret) != 32 {
		return box{}, fmt.Errorf("the secret key must be 32 bytes, not %d", len(secret))
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return box{}, err
	}
	aead, err := cipher.NewGCM(block)
	return box{aead}, err
}

func (b box) seal(what string, plain []byte) []byte {
	nonce := make([]byte, b.aead.NonceSize(), b.aead.NonceSize()+len(plain)+b.aead.Overhead())
	rand.Read(nonce)
	return b.aead.Seal(nonce, nonce, plain, []byte(what))
}

func (b box) open(what string, sealed []byte) ([]byte, error) {
	n := b.aead.NonceSize()
	if len(sealed) < n {
		return nil, errors.New("a stored secret is broken")
	}
	plain, err := b.aead.Open(nil, sealed[:n], sealed[n:], []byte(what))
	if err != nil {
		return nil, errors.New("a stored secret can't be read: PARLEY_SECRET_KEY is not the key that it was stored with")
	}
	return plain, nil
}

// Seal encrypts what is kept in a job; what names the purpose, and must be the same for Unseal.
func (q Query) Seal(what string, plain []byte) []byte { return q.box.seal(what, plain) }

// Unseal decrypts what Seal made.
func (q Query) Unseal(what string, sealed []byte) ([]byte, error) { return q.box.open(what, sealed) }

// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/pipe/wholefile"
)

// KeyBytes is the size of a field's key.
const KeyBytes = 32

// Key is the key of one field.
type Key [KeyBytes]byte

// Keys are the keys at hand.
type Keys map[Field]Key

// maxKeyFile bounds a key file: comments included.
const maxKeyFile = 64 << 10

const keyFileHead = `# iotape anonymisation keys: who has a line opens that field of the tapes made with it.
# Lines can be cut out and given away. Without its key a field is lost.
`

// NewKeys returns random keys for all fields.
func NewKeys() Keys {
	keys := Keys{}
	for f := range numFields {
		var k Key
		rand.Read(k[:]) // never fails
		keys[f] = k
	}
	return keys
}

// CreateKeyFile writes new keys for all fields to a file that must not exist, for its
// owner's eyes (mode 0600).
func CreateKeyFile(name string) (Keys, error) {
	keys := NewKeys()
	if err := wholefile.WriteNew(name, 0o600, keys.encode()); err != nil {
		return nil, fmt.Errorf("make key file: %w", err)
	}
	return keys, nil
}

// encode returns the text of a key file: a field and 64 hexadecimal digits a line.
func (k Keys) encode() []byte {
	b := []byte(keyFileHead)
	for f := range numFields {
		if key, ok := k[f]; ok {
			b = fmt.Appendf(b, "%-8s %x\n", f, key[:])
		}
	}
	return b
}

// ReadKeyFile reads a key file, or a part of one. shared reports whether others than its
// owner may read it.
func ReadKeyFile(name string) (keys Keys, shared bool, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, false, fmt.Errorf("read keys: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, false, fmt.Errorf("read keys: %w", err)
	}
	if keys, err = ParseKeys(f); err != nil {
		return nil, false, fmt.Errorf("%s: %w", name, err)
	}
	return keys, st.Mode()&fs.ModePerm&0o077 != 0, nil
}

// ParseKeys reads the text of a key file. Lines that are empty or begin with # are
// skipped.
func ParseKeys(r io.Reader) (Keys, error) {
	keys := Keys{}
	sc := bufio.NewScanner(io.LimitReader(r, maxKeyFile+1))
	size := 0
	for n := 1; sc.Scan(); n++ {
		if size += len(sc.Bytes()) + 1; size > maxKeyFile {
			return nil, fmt.Errorf("is larger than %d bytes, so no key file", maxKeyFile)
		}
		words := strings.Fields(sc.Text())
		if len(words) == 0 || words[0][0] == '#' {
			continue
		}
		f, ok := fieldByName(words[0])
		if !ok {
			return nil, fmt.Errorf("line %d: there is no field %.20q; the fields are %s", n, words[0], AllFields)
		}
		var key Key
		if len(words) != 2 || len(words[1]) != 2*KeyBytes {
			return nil, fmt.Errorf("line %d: the key of %s is not %d hexadecimal digits", n, f, 2*KeyBytes)
		}
		if _, err := hex.Decode(key[:], []byte(words[1])); err != nil {
			return nil, fmt.Errorf("line %d: the key of %s is not hexadecimal", n, f)
		}
		if _, twice := keys[f]; twice {
			return nil, fmt.Errorf("line %d: a second key of %s", n, f)
		}
		keys[f] = key
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, errors.New("has no keys")
	}
	return keys, nil
}

// derive makes a key for one use of a field's key. The contexts are part of the format.
func (k *Key) derive(f Field, use string) (sub Key) {
	blake3.DeriveKey("iotape anon 1 "+f.String()+" "+use, k[:], sub[:])
	return sub
}

// fingerprint identifies the key without telling it.
func (k *Key) fingerprint(f Field) string {
	sub := k.derive(f, "fingerprint")
	return hex.EncodeToString(sub[:8])
}

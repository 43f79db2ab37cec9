// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"filippo.io/age"

	"github.com/iotape/iotape/pipe"
	"github.com/iotape/iotape/pipe/checksum"
	"github.com/iotape/iotape/pipe/compress"
	"github.com/iotape/iotape/pipe/encrypt"
	"github.com/iotape/iotape/pipe/wholefile"
)

// Keys undo layers. Nil is none.
type Keys struct {
	Identities []age.Identity // for encrypt
	Checksum   []checksum.Key
}

const (
	envPrefix    = "env:"
	keyPrefix    = "IOTAPE-CHECKSUM-KEY-"
	maxFileBytes = 64 << 10
)

// ReadKeys reads secret keys from files, or from variables as env:NAME: identities as
// age-keygen and iotape keygen make them, and keys of checksums.
func ReadKeys(identities, keys []string) (*Keys, error) {
	k := &Keys{}
	for _, from := range identities {
		b, err := secret(from)
		if err != nil {
			return nil, fmt.Errorf("identity: %w", err)
		}
		ids, err := age.ParseIdentities(bytes.NewReader(b))
		if err != nil {
			// The cause quotes lines.
			return nil, fmt.Errorf("identity: %s has no secret key of age that can be read", from)
		}
		k.Identities = append(k.Identities, ids...)
	}
	for _, from := range keys {
		ks, err := readKeys(from)
		if err != nil {
			return nil, fmt.Errorf("key: %w", err)
		}
		k.Checksum = append(k.Checksum, ks...)
	}
	return k, nil
}

// secret reads what others must not read.
func secret(from string) ([]byte, error) {
	if name, ok := strings.CutPrefix(from, envPrefix); ok {
		v, ok := os.LookupEnv(name)
		if !ok {
			return nil, fmt.Errorf("there is no variable %s in the environment", name)
		}
		return []byte(v), nil
	}
	return readLimited(from, true)
}

// readLimited reads a file of keys. What is checked is what is read: the name may lead to another file a moment later.
func readLimited(file string, secret bool) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if secret && st.Mode().IsRegular() && st.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s is secret, but its mode %v gives others access: chmod 600", file, st.Mode().Perm())
	}
	b, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(b) > maxFileBytes {
		err = fmt.Errorf("%s is too large for keys", file)
	}
	return b, err
}

// readKeys reads keys of checksums, one a line.
func readKeys(from string) ([]checksum.Key, error) {
	b, err := secret(from)
	if err != nil {
		return nil, err
	}
	var keys []checksum.Key
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		text, ok := strings.CutPrefix(line, keyPrefix)
		raw, err := hex.DecodeString(text)
		if !ok || err != nil || len(raw) != checksum.KeyBytes {
			return nil, fmt.Errorf("%s has a line that is no key: iotape keygen --checksum makes one", from)
		}
		keys = append(keys, checksum.Key(raw))
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s has no key in it", from)
	}
	return keys, lines.Err()
}

// NewIdentity makes a key pair: the text of a file for the secret one, and the public
// one.
func NewIdentity() (file, recipient string, err error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return "", "", err
	}
	recipient = id.Recipient().String()
	return fmt.Sprintf("# public key: %s\n%s\n", recipient, id), recipient, nil
}

// NewChecksumKey makes a key: the text of a file for it, and the ID that streams have in
// clear.
func NewChecksumKey() (file, id string) {
	var k checksum.Key
	rand.Read(k[:])
	public := k.ID()
	id = hex.EncodeToString(public[:])
	return fmt.Sprintf("# key %s\n%s%s\n", id, keyPrefix, strings.ToUpper(hex.EncodeToString(k[:]))), id
}

// Open makes the decoders of a stream. It is a pipe.Opener.
func (k *Keys) Open(h *pipe.Header) ([]pipe.Decoder, error) {
	decoders, lacking, err := k.OpenSome(h)
	if err == nil {
		err = lacking
	}
	return decoders, err
}

// OpenSome is Open for looking at a stream whose keys may not all be there: the decoder
// of a layer whose key lacks is nil, and lacking says why.
func (k *Keys) OpenSome(h *pipe.Header) (decoders []pipe.Decoder, lacking, err error) {
	if k == nil {
		k = &Keys{}
	}
	for i, l := range h.Layers {
		d, err := k.open(h, i)
		var key *checksum.KeyError
		var recipient *encrypt.RecipientError
		switch {
		case errors.As(err, &key), errors.As(err, &recipient):
			lacking = fmt.Errorf("layer %s: %w", l.Name, err)
		case err != nil:
			return nil, nil, fmt.Errorf("layer %s: %w", l.Name, err)
		}
		decoders = append(decoders, d)
	}
	return decoders, lacking, nil
}

func (k *Keys) open(h *pipe.Header, i int) (pipe.Decoder, error) {
	l := &h.Layers[i]
	if d, ok, err := compress.Open(l.Name, h.MaxPlain(i)); ok {
		return d, err
	}
	if d, ok, err := checksum.Open(l.Name, l.Params, k.Checksum); ok {
		return d, err
	}
	if d, ok, err := encrypt.Open(l.Name, l.Params, k.Identities); ok {
		return d, err
	}
	return nil, fmt.Errorf("a layer that this program does not know: %w", pipe.ErrNewer)
}

type keysOf struct{}

// WithKeys returns a context in which Plain finds keys.
func WithKeys(ctx context.Context, k *Keys) context.Context {
	return context.WithValue(ctx, keysOf{}, k)
}

// KeysOf returns the keys of a context, nil if there are none.
func KeysOf(ctx context.Context) *Keys {
	k, _ := ctx.Value(keysOf{}).(*Keys)
	return k
}

// Plain returns a reader of what r has: the bytes that were piped, if it begins like a
// piped stream, undone with the keys of the context; else r's own.
func Plain(ctx context.Context, r io.Reader) (plain io.Reader, piped bool, err error) {
	b := bufio.NewReaderSize(r, 256<<10)
	head, err := b.Peek(len(pipe.Magic))
	if err != nil && err != io.EOF {
		return nil, false, err
	}
	if string(head) != pipe.Magic {
		return b, false, nil
	}
	pr, err := pipe.NewReader(b, KeysOf(ctx).Open, nil)
	return pr, true, err
}

// CreateKeyFile makes a key and writes its secret to a new file that only its owner can
// read: an identity for encryption, or a key for checksums. It returns what may be public:
// the recipient, or the ID of the key.
func CreateKeyFile(name string, checksum bool) (public string, err error) {
	text := ""
	if checksum {
		text, public = NewChecksumKey()
	} else if text, public, err = NewIdentity(); err != nil {
		return "", err
	}
	if err := wholefile.WriteNew(name, 0o600, []byte(text)); err != nil {
		return "", err
	}
	return public, nil
}

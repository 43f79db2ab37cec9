// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/zeebo/blake3"

	"github.com/iotape/iotape/trace"
)

// formatVersion is that of trace.Anonymised: of the mappings.
const formatVersion = 1

// ErrWrongKey is wrapped where a key is not the one that a tape was made with.
var ErrWrongKey = errors.New("another key than the tape was made with")

// sign puts the MACs into a manifest of those fields whose keys are at hand. A MAC is of
// everything in the manifest but the MACs, and so of the hashes of all files.
func sign(m *trace.Manifest, keys Keys) error {
	if m.Anonymised == nil {
		return nil
	}
	text, err := signed(m)
	if err != nil {
		return err
	}
	for name, s := range m.Anonymised.Fields {
		f, known := fieldByName(name)
		key, ok := keys[f]
		if known && ok && key.fingerprint(f) == s.Key {
			s.MAC = mac(&key, f, text)
			m.Anonymised.Fields[name] = s
		}
	}
	return nil
}

// signed returns what MACs are of: the manifest without them.
func signed(m *trace.Manifest) ([]byte, error) {
	c := *m
	c.Anonymised, c.Format, c.Version = m.Anonymised.Unsigned(), "", 0
	b, err := json.Marshal(&c)
	if err != nil {
		return nil, fmt.Errorf("sign manifest: %w", err)
	}
	return b, nil
}

func mac(key *Key, f Field, text []byte) string {
	sub := key.derive(f, "mac")
	h, err := blake3.NewKeyed(sub[:])
	if err != nil {
		panic(err) // the size is a constant
	}
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

// verify returns the fields of a set that are encrypted and can be opened. It refuses keys
// that are not the tape's, and a manifest that is not as it was signed. unsigned reports
// whether there was no MAC to go by.
func verify(m *trace.Manifest, keys Keys, want Fields) (open Fields, unsigned bool, err error) {
	a := m.Anonymised
	if a.Version > formatVersion {
		return 0, false, fmt.Errorf("anonymised with version %d, this program knows up to %d: %w", a.Version,
			formatVersion, trace.ErrNewer)
	}
	text, err := signed(m)
	if err != nil {
		return 0, false, err
	}
	for _, f := range want.List() {
		key, have := keys[f]
		s, encrypted := a.Fields[f.String()]
		if !have || !encrypted {
			continue
		}
		switch is := key.fingerprint(f); {
		case is != s.Key:
			return 0, false, fmt.Errorf("the key of %s is %s, the tape's is %.16q: %w", f, is, s.Key, ErrWrongKey)
		case s.MAC == "":
			unsigned = true
		case !hmac.Equal([]byte(mac(&key, f, text)), []byte(s.MAC)):
			return 0, false, fmt.Errorf("the manifest was changed after it was signed with the key of %s: %w",
				f, trace.ErrCorrupt)
		}
		open |= 1 << f
	}
	if open == 0 {
		return 0, false, errors.New("none of the keys is for a field that is anonymised")
	}
	return open, unsigned, nil
}

// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/iotape/iotape/fleet/batch"
	"github.com/iotape/iotape/fleet/staging"
	"github.com/iotape/iotape/internal/hint"
	"github.com/iotape/iotape/pipe/wholefile"
)

// Role is what the owner of a key may do.
type Role string

// The roles.
const (
	Agent     Role = "agent"     // send the batches of its own host, and no more
	Reader    Role = "reader"    // read what all agents send
	Collector Role = "collector" // everything
)

// Key is who may connect.
type Key struct {
	Name   string `json:"name"` // of an agent: its host's
	Role   Role   `json:"role"`
	Public string `json:"public"` // nkey of a user
	// Previous is the key that Public took the place of, nil if there is none.
	Previous *Previous `json:"previous,omitempty"`
}

// Previous is a key that another one took the place of. Both are accepted for a time, so that the owner changes
// it when it suits him, and what he sent with it is still read.
type Previous struct {
	Public string    `json:"public"`
	Until  time.Time `json:"until"`
}

// Publics returns the public keys that are accepted at a time.
func (k *Key) Publics(now time.Time) []string {
	if k.Previous != nil && now.Before(k.Previous.Until) {
		return []string{k.Public, k.Previous.Public}
	}
	return []string{k.Public}
}

// has reports whether a public key is or was that of the owner.
func (k *Key) has(public string) bool {
	return k.Public == public || k.Previous != nil && k.Previous.Public == public
}

func (k *Key) check() error {
	if err := staging.CheckHost(k.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	all := []string{k.Public}
	if k.Previous != nil {
		all = append(all, k.Previous.Public)
	}
	for _, public := range all {
		if !nkeys.IsValidPublicUserKey(public) {
			return fmt.Errorf("%.80q is not the public nkey of a user, which begins with U", public)
		}
	}
	switch k.Role {
	case Agent, Reader, Collector:
		return nil
	}
	return fmt.Errorf("role %.40q is none of agent, reader and collector", k.Role)
}

// Allowed returns the subjects that the owner may publish to and subscribe to with one of the public keys.
func (k *Key) Allowed(public string) (publish, subscribe []string) {
	inbox := batch.Inbox(public) + ".>"
	const js = "$JS.API."
	switch k.Role {
	case Agent:
		return []string{batch.Batches + k.Name, batch.Hellos + k.Name, batch.Reports + k.Name}, []string{inbox}
	case Reader:
		return []string{
			js + "STREAM.INFO." + batch.Bucket, js + "STREAM.MSG.GET." + batch.Bucket, js + "DIRECT.GET." + batch.Bucket,
			js + "CONSUMER.CREATE." + batch.Bucket + ".>", js + "CONSUMER.INFO." + batch.Bucket + ".>", js + "CONSUMER.MSG.NEXT." + batch.Bucket + ".>",
		}, []string{inbox, batch.Reports + ">"}
	}
	return []string{">"}, []string{">"}
}

func (k *Key) users(now time.Time) (list []*server.NkeyUser) {
	for _, public := range k.Publics(now) {
		publish, subscribe := k.Allowed(public)
		list = append(list, &server.NkeyUser{Nkey: public, Permissions: &server.Permissions{
			Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe},
		}})
	}
	return list
}

// keyDir is where keys are within a collector's data.
func keyDir(data string) string { return filepath.Join(data, keysName) }

const (
	keysName = "keys"
	keyParts = 2        // of the last parts of a key file's name, below the data
	maxKey   = 64 << 10 // bytes of a key's file
)

func keyFile(data, name string) string { return filepath.Join(keyDir(data), name+".json") }

// ownersDir has a symbolic link for each public key, whose text is its owner's name: so
// enrolling a host among thousands reads none of their keys. It is made from the keys where
// it is missing, and a link counts only if its owner has that key.
func ownersDir(data string) string { return filepath.Join(keyDir(data), "owners") }

// revokedFile is there if the key of a name was revoked, and none enrolled since.
func revokedFile(data, name string) string { return filepath.Join(keyDir(data), "revoked", name) }

// Enrol lets the owner of a key connect. A name has one key: another one is only taken when the first is
// revoked, or by Replace.
func Enrol(data string, k *Key) error {
	return enrol(data, k, func(other *Key) error {
		if other == nil {
			return nil
		}
		return hint.With(fmt.Errorf("%s is enrolled already, as %s", k.Name, other.Role),
			"collector enrol --replace gives it another key, collector revoke takes its key away")
	})
}

// Replace gives the owner of a key another one. The key until now is accepted for overlap more.
func Replace(data string, k *Key, overlap time.Duration) error {
	return enrol(data, k, func(other *Key) error {
		switch {
		case other == nil:
			return fmt.Errorf("%s is not enrolled: there is no key to replace", k.Name)
		case other.Role != k.Role:
			return fmt.Errorf("%s is enrolled as %s: the role of a key cannot be replaced", k.Name, other.Role)
		case other.has(k.Public):
			return fmt.Errorf("this key is that of %s already", k.Name)
		}
		if before := other.Previous; before != nil {
			_ = os.Remove(filepath.Join(ownersDir(data), before.Public)) // if it stays, it does not count
		}
		if overlap > 0 {
			k.Previous = &Previous{other.Public, time.Now().Add(overlap).UTC().Truncate(time.Second)}
		}
		return nil
	})
}

// enrol writes a key if may agrees to it beside the one that its name has, nil if none.
func enrol(data string, k *Key, may func(other *Key) error) error {
	if err := k.check(); err != nil {
		return err
	}
	if err := wholefile.MkdirOwn(keyDir(data), 1, 0o700); err != nil {
		return err
	}
	lock, err := lockKeys(data)
	if err != nil {
		return err
	}
	defer lock.Close()
	other, err := readKey(keyFile(data, k.Name))
	switch {
	case err == nil:
		err = may(&other)
	case errors.Is(err, fs.ErrNotExist):
		err = may(nil)
	}
	if err != nil {
		return err
	}
	if err := own(data, k); err != nil {
		return err
	}
	if err := staging.WriteFile(keyFile(data, k.Name), keyParts, k); err != nil {
		return err
	}
	if err := os.Remove(revokedFile(data, k.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lockKeys keeps others from enrolling and revoking until the file is closed.
func lockKeys(data string) (*os.File, error) {
	f, err := wholefile.DirBelow(data, keysName)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), f.Close())
	}
	return f, nil
}

// own notes whose a public key is, if it is nobody's.
func own(data string, k *Key) error {
	if _, err := os.Stat(ownersDir(data)); errors.Is(err, fs.ErrNotExist) {
		if err := ownAll(data); err != nil {
			return err
		}
	}
	link := filepath.Join(ownersDir(data), k.Public)
	owner, err := os.Readlink(link)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if other, err := readKey(keyFile(data, filepath.Base(owner))); err == nil && other.has(k.Public) {
			return fmt.Errorf("this key is that of %s", other.Name)
		}
		if err := os.Remove(link); err != nil {
			return err
		}
	}
	return os.Symlink(k.Name, link)
}

// ownAll makes the links for all keys, whole or not at all.
func ownAll(data string) error {
	keys, _, err := Keys(data) // the link of a damaged one would not count
	if err != nil {
		return err
	}
	making := ownersDir(data) + ".next"
	if err := errors.Join(wholefile.RemoveOwn(making, 2), wholefile.MkdirOwn(making, 2, 0o700)); err != nil {
		return err
	}
	for i := range keys {
		publics := []string{keys[i].Public}
		if before := keys[i].Previous; before != nil {
			publics = append(publics, before.Public)
		}
		for _, public := range publics {
			if err := os.Symlink(keys[i].Name, filepath.Join(making, public)); err != nil &&
				!errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	}
	return os.Rename(making, ownersDir(data))
}

// Revoke takes the keys of a name away, and notes that it did.
func Revoke(data, name string) error {
	if err := staging.CheckHost(name); err != nil {
		return err
	}
	lock, err := lockKeys(data)
	if err == nil {
		defer lock.Close()
		k, _ := readKey(keyFile(data, name)) // of one that cannot be read the link stays, and does not count
		if err = os.Remove(keyFile(data, name)); err == nil && k.Public != "" {
			_ = os.Remove(filepath.Join(ownersDir(data), k.Public))
			if k.Previous != nil {
				_ = os.Remove(filepath.Join(ownersDir(data), k.Previous.Public))
			}
		}
		if err == nil {
			note := revokedFile(data, name)
			err = errors.Join(wholefile.MkdirOwn(filepath.Dir(note), 2, 0o700), touch(note))
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not enrolled", name)
	}
	return err
}

// touch makes an empty file.
func touch(note string) error {
	f, err := wholefile.OpenOwn(note, 3, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// readKey reads a key's file.
func readKey(name string) (k Key, err error) {
	b, err := wholefile.ReadOwn(name, keyParts, maxKey)
	if err != nil {
		return k, err
	}
	if err = json.Unmarshal(b, &k); err == nil {
		err = k.check()
	}
	if err != nil {
		return Key{}, fmt.Errorf("%s: %w", name, err)
	}
	return k, nil
}

// Keys returns who may connect, by name. A file that is damaged admits nobody and keeps nobody
// else from connecting: damaged names each, with what is wrong.
func Keys(data string) (keys []Key, damaged []error, err error) {
	entries, err := wholefile.ReadDirOwn(keyDir(data), 1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		k, err := readKey(filepath.Join(keyDir(data), e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // revoked meanwhile
		}
		if err != nil {
			damaged = append(damaged, err)
			continue
		}
		keys = append(keys, k)
	}
	return keys, damaged, nil
}

// Keyring says which key a host's agent has, as the files of keys are at the moment.
type Keyring struct {
	data  string
	mu    sync.Mutex
	known map[string]known
}

type known struct {
	file fs.FileInfo
	key  *Key // nil if it is none of an agent
}

// NewKeyring returns the keys within a collector's data.
func NewKeyring(data string) *Keyring { return &Keyring{data: data, known: map[string]known{}} }

// Revoked reports whether the key of a host was revoked, and none enrolled since. The name has to be checked.
func (r *Keyring) Revoked(host string) bool {
	_, err := os.Stat(revokedFile(r.data, host))
	return err == nil
}

// Publics returns the keys of a host's agent that are accepted now, none if it has none. The name has to be
// checked.
func (r *Keyring) Publics(host string) []string {
	name := keyFile(r.data, host)
	fi, err := os.Stat(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		delete(r.known, host)
		return nil
	}
	k, ok := r.known[host]
	if !ok || !os.SameFile(k.file, fi) || !k.file.ModTime().Equal(fi.ModTime()) {
		k = known{file: fi}
		if read, err := readKey(name); err == nil && read.Role == Agent {
			k.key = &read
		}
		r.known[host] = k
	}
	if k.key == nil {
		return nil
	}
	return k.key.Publics(time.Now())
}

// Config writes the keys as the authorization of a NATS server's configuration file.
func Config(keys []Key) string {
	var b strings.Builder
	list := func(subjects []string) string {
		quoted := make([]string, len(subjects))
		for i, s := range subjects {
			quoted[i] = fmt.Sprintf("%q", s)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	b.WriteString("authorization {\n  users = [\n")
	for i := range keys {
		k := &keys[i]
		for _, public := range k.Publics(time.Now()) {
			publish, subscribe := k.Allowed(public)
			until := ""
			if public != k.Public {
				until = ", until " + k.Previous.Until.Format(time.RFC3339)
			}
			fmt.Fprintf(&b, "    # %s %s%s\n    { nkey: %s, permissions: { publish: { allow: %s }, "+
				"subscribe: { allow: %s } } }\n", k.Role, k.Name, until, public, list(publish), list(subscribe))
		}
	}
	b.WriteString("  ]\n}\n")
	return b.String()
}

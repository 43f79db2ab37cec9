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

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/iotape/iotape/fleet/batch"
	"github.com/iotape/iotape/fleet/staging"
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
}

func (k *Key) check() error {
	if err := staging.CheckHost(k.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	if !nkeys.IsValidPublicUserKey(k.Public) {
		return fmt.Errorf("%.80q is not the public nkey of a user, which begins with U", k.Public)
	}
	switch k.Role {
	case Agent, Reader, Collector:
		return nil
	}
	return fmt.Errorf("role %.40q is none of agent, reader and collector", k.Role)
}

// Allowed returns the subjects that the owner may publish to and subscribe to.
func (k *Key) Allowed() (publish, subscribe []string) {
	inbox := batch.Inbox(k.Public) + ".>"
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

func (k *Key) user() *server.NkeyUser {
	publish, subscribe := k.Allowed()
	return &server.NkeyUser{Nkey: k.Public, Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Allow: publish}, Subscribe: &server.SubjectPermission{Allow: subscribe},
	}}
}

// keyDir is where keys are within a collector's data.
func keyDir(data string) string { return filepath.Join(data, "keys") }

func keyFile(data, name string) string { return filepath.Join(keyDir(data), name+".json") }

// ownersDir has a symbolic link for each public key, whose text is its owner's name: so
// enrolling a host among thousands reads none of their keys. It is made from the keys where
// it is missing, and a link counts only if its owner has that key.
func ownersDir(data string) string { return filepath.Join(keyDir(data), "owners") }

// Enrol lets the owner of a key connect. A name has one key: another one is only
// taken when the first is revoked.
func Enrol(data string, k *Key) error {
	if err := k.check(); err != nil {
		return err
	}
	if err := os.MkdirAll(keyDir(data), 0o700); err != nil {
		return err
	}
	lock, err := lockKeys(data)
	if err != nil {
		return err
	}
	defer lock.Close()
	switch other, err := readKey(keyFile(data, k.Name)); {
	case err == nil:
		return fmt.Errorf("%s is enrolled already, as %s: revoke it first", k.Name, other.Role)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := own(data, k); err != nil {
		return err
	}
	return staging.WriteFile(keyFile(data, k.Name), k)
}

// lockKeys keeps others from enrolling and revoking until the file is closed.
func lockKeys(data string) (*os.File, error) {
	f, err := os.Open(keyDir(data))
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
		if other, err := readKey(keyFile(data, filepath.Base(owner))); err == nil && other.Public == k.Public {
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
	if err := errors.Join(os.RemoveAll(making), os.Mkdir(making, 0o700)); err != nil {
		return err
	}
	for i := range keys {
		if err := os.Symlink(keys[i].Name, filepath.Join(making, keys[i].Public)); err != nil &&
			!errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return os.Rename(making, ownersDir(data))
}

// Revoke takes a key away.
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
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is not enrolled", name)
	}
	return err
}

// readKey reads a key's file.
func readKey(name string) (k Key, err error) {
	b, err := os.ReadFile(name)
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
	entries, err := os.ReadDir(keyDir(data))
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
	file   fs.FileInfo
	public string // "" if it is none of an agent
}

// NewKeyring returns the keys within a collector's data.
func NewKeyring(data string) *Keyring { return &Keyring{data: data, known: map[string]known{}} }

// Public returns the key of a host's agent, "" if there is none. The name has to be checked.
func (r *Keyring) Public(host string) string {
	name := keyFile(r.data, host)
	fi, err := os.Stat(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		delete(r.known, host)
		return ""
	}
	if k, ok := r.known[host]; ok && os.SameFile(k.file, fi) && k.file.ModTime().Equal(fi.ModTime()) {
		return k.public
	}
	k := known{file: fi}
	if read, err := readKey(name); err == nil && read.Role == Agent {
		k.public = read.Public
	}
	r.known[host] = k
	return k.public
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
		publish, subscribe := k.Allowed()
		fmt.Fprintf(&b, "    # %s %s\n    { nkey: %s, permissions: { publish: { allow: %s }, subscribe: { allow: %s "+
			"} } }\n", k.Role, k.Name, k.Public, list(publish), list(subscribe))
	}
	b.WriteString("  ]\n}\n")
	return b.String()
}

// SPDX-License-Identifier: Apache-2.0

// Package key makes and reads the secret keys with which agents, readers and
// collectors show who they are: nkeys (Ed25519), each in a file of its own that only
// its owner can read. Secrets leave a file for signing, and no other way.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package key

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/nats-io/nkeys"
	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/pipe/wholefile"
)

// Create makes a secret key in a new file and returns its public part.
func Create(name string) (public string, err error) {
	kp, err := nkeys.CreateUser()
	if err != nil {
		return "", err
	}
	defer kp.Wipe()
	if public, err = kp.PublicKey(); err != nil {
		return "", err
	}
	seed, err := kp.Seed()
	if err != nil {
		return "", err
	}
	defer clear(seed)
	if err := wholefile.WriteNew(name, 0o600, append(seed, '\n')); err != nil {
		return "", err
	}
	return public, nil
}

// Verify reports whether a digest was signed with the secret of a public key.
func Verify(public string, digest, signature []byte) bool {
	kp, err := nkeys.FromPublicKey(public)
	return err == nil && kp.Verify(digest, signature) == nil
}

// maxSeed limits the size of a secret's file, in bytes.
const maxSeed = 4 << 10

// readSecret reads a file that only its owner can read, who is the user or root. What is checked is what is read: the
// name may lead to another file a moment later. A link to it is the administrator's choice.
func readSecret(name string) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0) // a FIFO is not waited for
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	switch {
	case !fi.Mode().IsRegular() || !ok:
		return nil, fmt.Errorf("%s is no key: %w", name, wholefile.ErrNotRegular)
	case fi.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("others may read %s: chmod 600 it", name)
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return nil, fmt.Errorf("%s is of the user %d, who knows the key: chown it", name, st.Uid)
	}
	return io.ReadAll(io.LimitReader(f, maxSeed))
}

// Read returns the pair whose secret is in a file, and its public part.
func Read(name string) (nkeys.KeyPair, string, error) {
	b, err := readSecret(name)
	if err != nil {
		return nil, "", err
	}
	defer clear(b)
	kp, err := nkeys.ParseDecoratedNKey(b)
	if err != nil {
		return nil, "", fmt.Errorf("%s is not an nkey seed: %w", name, err)
	}
	public, err := kp.PublicKey()
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", name, err)
	}
	return kp, public, nil
}

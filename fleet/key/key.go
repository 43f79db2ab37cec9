// SPDX-License-Identifier: Apache-2.0

// Package key makes and reads the secret keys with which agents, readers and
// collectors show who they are: nkeys (Ed25519), each in a file of its own that only
// its owner can read. Secrets leave a file for signing, and no other way.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package key

import (
	"fmt"
	"os"

	"github.com/nats-io/nkeys"

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

// Read returns the pair whose secret is in a file, and its public part.
func Read(name string) (nkeys.KeyPair, string, error) {
	fi, err := os.Stat(name)
	if err != nil {
		return nil, "", err
	}
	if fi.Mode().Perm()&0o077 != 0 {
		return nil, "", fmt.Errorf("others may read %s: chmod 600 it", name)
	}
	b, err := os.ReadFile(name)
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

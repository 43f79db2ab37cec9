// SPDX-License-Identifier: Apache-2.0

package team

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// What a secret may have, in bytes.
const (
	minSecret = 16
	maxSecret = 4096
)

// FromInput is the name of a secret that comes on the standard input, on a line.
const FromInput = "-"

// readSecret reads a secret that only its owner can.
func readSecret(name string) ([]byte, error) {
	if name == FromInput {
		return lineSecret(os.Stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("the team's secret: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the team's secret, %s, is not its owner's alone: chmod 600", name)
	}
	b := make([]byte, maxSecret)
	n, err := f.Read(b)
	if n < minSecret {
		return nil, fmt.Errorf("the team's secret, %s, has less than %d bytes (%w)", name, minSecret, errors.Join(err))
	}
	return b[:n], nil
}

// lineSecret reads a secret that the hub has sent with the launcher.
func lineSecret(from io.Reader) ([]byte, error) {
	line, err := bufio.NewReader(io.LimitReader(from, maxSecret)).ReadString('\n')
	if err != nil || len(line) <= minSecret {
		return nil, errors.New(
			"the team's secret did not come on the standard input: does the launcher pass that on? if not, name a " +
				"file with --secret")
	}
	return []byte(line[:len(line)-1]), nil
}

// memorySecret puts a secret where this user's processes on this machine find it, as long
// as this one has the file: when it ends, however that is, nothing is left.
func memorySecret(secret []byte) (f *os.File, name string, err error) {
	fd, err := unix.MemfdCreate("iotape-secret", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, "", fmt.Errorf("keep the team's secret: %w", err)
	}
	f = os.NewFile(uintptr(fd), "secret")
	if err = f.Chmod(0o600); err == nil {
		_, err = f.Write(secret)
	}
	if err != nil {
		f.Close()
		return nil, "", fmt.Errorf("keep the team's secret: %w", err)
	}
	return f, fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd), nil
}

// tlsOf returns how both sides of a connection speak: with a key that only who has the
// secret can have.
func tlsOf(secret []byte) (*tls.Config, error) {
	seed := sha256.Sum256(append([]byte("iotape replay hosts 1\x00"), secret...))
	key := ed25519.NewKeyFromSeed(seed[:])
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0),
		NotAfter: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}},
		ClientAuth:   tls.RequireAnyClientCert,
		// There are no names and no authorities: the key is what counts.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) > 0 {
				theirs, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
				if ok && subtle.ConstantTimeCompare(theirs, key.Public().(ed25519.PublicKey)) == 1 {
					return nil
				}
			}
			return errors.New("the other side has another secret")
		},
	}, nil
}

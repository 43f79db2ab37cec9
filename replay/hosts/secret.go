package hosts

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"os"
	"time"
)

// minSecret is the least that a secret may have, in bytes.
const minSecret = 16

// readSecret reads a secret that only its owner can.
func readSecret(name string) ([]byte, error) {
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
	b := make([]byte, 4096)
	n, err := f.Read(b)
	if n < minSecret {
		return nil, fmt.Errorf("the team's secret, %s, has less than %d bytes (%w)", name, minSecret, errors.Join(err))
	}
	return b[:n], nil
}

// makeSecret makes a secret in a file of its own.
func makeSecret() (name string, err error) {
	f, err := os.CreateTemp("", "iotape-secret-*") // for its owner alone
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(hex.EncodeToString([]byte(rand.Text())))
	return f.Name(), errors.Join(err, f.Close())
}

// tlsOf returns how both sides of a connection speak: with a key that only who has the
// secret can have.
func tlsOf(secret []byte) (*tls.Config, error) {
	seed := sha256.Sum256(append([]byte("iotape replay hosts 1\x00"), secret...))
	key := ed25519.NewKeyFromSeed(seed[:])
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
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

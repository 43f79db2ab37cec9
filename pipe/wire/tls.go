// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Files names PEM files for TLS. A certificate goes with its key.
type Files struct {
	// The authorities to trust: of a client for servers; of a server for clients, which must
	// then have a certificate.
	CA   string
	Cert string
	Key  string // others must not be able to read it
}

// ClientTLS returns a configuration for clients. Without CA they trust the system's
// authorities.
func ClientTLS(f Files) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS13}
	var err error
	if f.CA != "" {
		if c.RootCAs, err = pool(f.CA); err != nil {
			return nil, err
		}
	}
	return c, f.load(c)
}

// ServerTLS returns a configuration for servers.
func ServerTLS(f Files) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS13}
	if f.Cert == "" {
		return nil, errors.New("TLS needs a certificate and its key")
	}
	var err error
	if f.CA != "" {
		if c.ClientCAs, err = pool(f.CA); err != nil {
			return nil, err
		}
		c.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return c, f.load(c)
}

func (f *Files) load(c *tls.Config) error {
	if f.Cert == "" && f.Key == "" {
		return nil
	}
	if f.Cert == "" || f.Key == "" {
		return errors.New("a certificate goes with its key")
	}
	st, err := os.Stat(f.Key)
	if err != nil {
		return err
	}
	if st.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s is secret, but its mode %v gives others access: chmod 600", f.Key, st.Mode().Perm())
	}
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	c.Certificates = []tls.Certificate{cert}
	return nil
}

func pool(file string) (*x509.CertPool, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("%s has no certificate", file)
	}
	return p, nil
}

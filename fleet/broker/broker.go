// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/iotape/iotape/fleet/batch"
)

// Options of a broker.
type Options struct {
	Data   string      // the collector's directory
	Listen string      // HOST:PORT; port 0 is a free one
	TLS    *tls.Config // nil is no TLS
	// Sync is how often the broker's file is synced. 0 is before each answer: then nothing that
	// an agent was told is kept is lost when the machine goes down.
	Sync    time.Duration
	Cluster *Cluster // nil: it is alone
	Note    func(line string)
}

// Cluster makes several brokers one.
type Cluster struct {
	Name   string // of this broker; unique
	Listen string // HOST:PORT, for other brokers
	Peers  []string
	TLS    *tls.Config // between brokers; nil is none
}

// Broker is a server that runs.
type Broker struct {
	o       Options
	server  *server.Server
	options *server.Options
	root    nkeys.KeyPair
	keys    []Key
	damaged map[string]bool                 // files of keys, with what is wrong
	read    struct{ changed, at time.Time } // of the keys: when their directory was changed, and when they were read
	log     *log
	lock    *os.File // two servers would damage each other's files
}

const startWait = 30 * time.Second

// StoreDir is where a broker keeps its streams within a collector's data.
func StoreDir(data string) string { return filepath.Join(data, "broker") }

// Start starts the server with the keys that there are.
func Start(o *Options) (*Broker, error) {
	b := &Broker{o: *o, log: &log{note: o.Note}}
	host, port, err := split(o.Listen)
	if err != nil {
		return nil, err
	}
	if b.root, err = nkeys.CreateUser(); err != nil {
		return nil, err
	}
	if b.keys, _, err = b.newKeys(); err != nil {
		return nil, err
	}
	users, err := b.users()
	if err != nil {
		return nil, err
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	so := &server.Options{
		ServerName: "iotape", Host: host, Port: port, NoSigs: true, NoSystemAccount: false,
		JetStream: true, StoreDir: StoreDir(o.Data), SyncInterval: o.Sync, SyncAlways: o.Sync <= 0,
		// The stream has a limit of its own. By default the server takes three quarters of what is free
		// when it starts, and does not take up a stream that is allowed more.
		JetStreamMaxStore: 1 << 60,
		MaxPayload:        batch.MaxBytes + 4096, MaxControlLine: 4096, MaxPending: 64 << 20,
		TLSConfig: o.TLS, TLS: o.TLS != nil, TLSTimeout: 5, AuthTimeout: 10, Nkeys: users,
		PingInterval: 20 * time.Second, MaxPingsOut: 2, WriteDeadline: 10 * time.Second,
	}
	if c := o.Cluster; c != nil {
		if err := c.apply(so); err != nil {
			return nil, err
		}
	}
	b.options = so
	if b.lock, err = lockDir(so.StoreDir); err != nil {
		return nil, err
	}
	if b.server, err = server.NewServer(so.Clone()); err != nil {
		return nil, errors.Join(fmt.Errorf("start the broker: %w", err), b.lock.Close())
	}
	b.server.SetLoggerV2(b.log, false, false, false)
	b.server.Start()
	if !b.server.ReadyForConnections(startWait) {
		b.Close()
		if last := b.log.lastLine(); last != "" {
			return nil, fmt.Errorf("start the broker on %s: %s", o.Listen, last)
		}
		return nil, fmt.Errorf("start the broker on %s: it is not ready after %s", o.Listen, startWait)
	}
	return b, nil
}

func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("%s is in use by another collector", dir), f.Close())
	}
	return f, nil // a file system without locks
}

func split(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", 0, err
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if port, err = strconv.Atoi(text); err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("address %s: the port is not a number up to 65535", address)
	}
	return host, port, nil
}

func (c *Cluster) apply(so *server.Options) error {
	host, port, err := split(c.Listen)
	if err != nil {
		return err
	}
	so.ServerName = c.Name
	so.Cluster = server.ClusterOpts{Name: "iotape", Host: host, Port: port, TLSConfig: c.TLS,
		TLSTimeout: 5, PoolSize: -1}
	for _, p := range c.Peers {
		if !strings.Contains(p, "://") {
			p = "nats://" + p
		}
		u, err := url.Parse(p)
		if err != nil || u.Host == "" {
			return fmt.Errorf("peer %q is not HOST:PORT", p)
		}
		so.Routes = append(so.Routes, u)
	}
	return nil
}

func (b *Broker) users() ([]*server.NkeyUser, error) {
	public, err := b.root.PublicKey()
	if err != nil {
		return nil, err
	}
	users := []*server.NkeyUser{{Nkey: public}}
	for i := range b.keys {
		users = append(users, b.keys[i].users(time.Now())...)
	}
	return users, nil
}

// Refresh takes keys that were enrolled, and disconnects those that were revoked. It
// says whether there were any.
func (b *Broker) Refresh() (changed bool, err error) {
	keys, changed, err := b.newKeys()
	if err != nil || !changed || reflect.DeepEqual(keys, b.keys) {
		return false, err
	}
	b.keys = keys
	next := b.options.Clone()
	if next.Nkeys, err = b.users(); err != nil {
		return false, err
	}
	if a, ok := b.server.Addr().(*net.TCPAddr); ok && next.Port == server.RANDOM_PORT {
		next.Port = a.Port
	}
	if err := b.server.ReloadOptions(next); err != nil {
		return false, fmt.Errorf("take the changed keys: %w", err)
	}
	return true, nil
}

// newKeys reads the keys, of which there may be thousands, if there can be others than
// before: the directory was changed, or it is some time ago, for a file may be written over.
func (b *Broker) newKeys() (keys []Key, changed bool, err error) {
	now := time.Now()
	fi, err := os.Stat(keyDir(b.o.Data))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, true, nil
	case err != nil:
		return nil, false, err
	// What is changed right after it was read may have the same time.
	case fi.ModTime().Equal(b.read.changed) && b.read.at.Sub(fi.ModTime()) > time.Second &&
		now.Sub(b.read.at) < time.Minute:
		return nil, false, nil
	}
	keys, damaged, err := Keys(b.o.Data)
	if err != nil {
		return nil, true, err
	}
	b.read.changed, b.read.at = fi.ModTime(), now
	for i := range keys {
		if k := &keys[i]; len(k.Publics(now)) == 1 {
			k.Previous = nil // its time is over: the keys are others than before
		}
	}
	told := map[string]bool{}
	for _, err := range damaged {
		what := err.Error()
		if told[what] = true; !b.damaged[what] {
			b.o.Note("damaged key, whose owner cannot connect: " + what)
		}
	}
	b.damaged = told
	return keys, true, nil
}

// Address returns where agents connect.
func (b *Broker) Address() string {
	scheme := "nats://"
	if b.o.TLS != nil {
		scheme = "tls://"
	}
	return scheme + b.server.Addr().String()
}

// Connect connects from within the process, with every right.
func (b *Broker) Connect() (*nats.Conn, error) {
	public, err := b.root.PublicKey()
	if err != nil {
		return nil, err
	}
	return nats.Connect("", nats.InProcessServer(b.server), nats.Nkey(public, b.root.Sign),
		nats.Name("iotape collector"),
		nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond), nats.Timeout(10*time.Second))
}

// Working reports whether the server keeps what is sent: it stops to when its disk is
// full, until it is started again.
func (b *Broker) Working() bool { return b.server.JetStreamEnabled() }

// Refused returns how many connections had no valid key, and how many requests were
// for subjects that the key is not for.
func (b *Broker) Refused() (connections, requests uint64) {
	return b.log.connections.Load(), b.log.requests.Load()
}

// Close stops the server.
func (b *Broker) Close() {
	b.server.Shutdown()
	b.server.WaitForShutdown()
	_ = b.lock.Close()
}

// log takes the server's lines: errors are for a person to know; refusals are counted.
type log struct {
	note                  func(string)
	connections, requests atomic.Uint64
	last                  atomic.Value
}

var _ server.Logger = (*log)(nil)

func (l *log) lastLine() string {
	s, _ := l.last.Load().(string)
	return s
}

func (l *log) line(format string, v []any) string { return fmt.Sprintf(format, v...) }

// Noticef drops a line.
func (l *log) Noticef(string, ...any) {}

// Warnf passes a warning on.
func (l *log) Warnf(format string, v ...any) { l.pass(l.line(format, v)) }

// Errorf passes an error on.
func (l *log) Errorf(format string, v ...any) { l.pass(l.line(format, v)) }

// Fatalf passes an error on: the server does not end the process.
func (l *log) Fatalf(format string, v ...any) {
	s := l.line(format, v)
	l.last.Store(s)
	l.note("broker: " + s)
}

// Debugf drops a line.
func (l *log) Debugf(string, ...any) {}

// Tracef drops a line.
func (l *log) Tracef(string, ...any) {}

func (l *log) pass(s string) {
	lower := strings.ToLower(s)
	switch {
	case strings.Contains(lower, "authentication error"), strings.Contains(lower, "authorization"),
		strings.Contains(lower, "tls handshake"):
		l.connections.Add(1)
	case strings.Contains(lower, "violation"):
		l.requests.Add(1)
	}
	// An agent that keeps trying says the same again and again, but for its port.
	if key := digits.Replace(s); l.last.Swap(key) != key {
		l.note("broker: " + s)
	}
}

var digits = strings.NewReplacer("0", "", "1", "", "2", "", "3", "", "4", "", "5", "",
	"6", "", "7", "", "8", "", "9", "")

// ErrNotWorking is what a broker says that has stopped to keep what is sent.
var ErrNotWorking = errors.New("the broker has stopped: its disk is full, or damaged")

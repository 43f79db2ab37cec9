// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/iotape/iotape/fleet/agent"
	"github.com/iotape/iotape/fleet/batch"
	"github.com/iotape/iotape/fleet/collector"
	"github.com/iotape/iotape/fleet/key"
	"github.com/iotape/iotape/fleet/staging"
	"github.com/iotape/iotape/internal/testenv"
)

// lines is what a program said.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) note(s string) {
	l.mu.Lock()
	l.all = append(l.all, s)
	l.mu.Unlock()
}

func (l *lines) count(text string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.all {
		if strings.Contains(strings.ToLower(s), strings.ToLower(text)) {
			n++
		}
	}
	return n
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

func wait(t *testing.T, what string, said *lines, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("%s: it did not happen; said was:\n%s", what, said)
}

// site is a broker with a collector.
type site struct {
	data string
	b    *Broker
	c    *collector.Collector
	said lines
}

func newSite(t *testing.T, tls *tls.Config, change func(*collector.Options)) *site {
	t.Helper()
	s := &site{data: t.TempDir()}
	var err error
	if s.b, err = Start(&Options{Data: s.data, Listen: "127.0.0.1:0", TLS: tls, Sync: time.Minute,
		Note: s.said.note}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.b.Close)
	nc, err := s.b.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	o := &collector.Options{Data: s.data, MinFree: 1 << 20, Commit: 20 * time.Millisecond,
		Keys: NewKeyring(s.data).Publics, Note: s.said.note}
	if change != nil {
		change(o)
	}
	if s.c, err = collector.New(t.Context(), nc, o, s.b.Refused); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.c.Run(ctx, nc) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("the collector: %v", err)
		}
	})
	s.c.Fleet() // it answers when it listens
	return s
}

// enrol makes a key for a name.
func (s *site) enrol(t *testing.T, name string, role Role) (secret string) {
	t.Helper()
	secret = filepath.Join(t.TempDir(), name+".nk")
	public, err := key.Create(secret)
	if err == nil {
		err = Enrol(s.data, &Key{Name: name, Role: role, Public: public})
	}
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := s.b.Refresh(); !changed || err != nil {
		t.Fatalf("the broker took no key: %v", err)
	}
	return secret
}

// source hands over frames of one event until it is stopped.
type source struct{ size int }

func (s source) Check(*agent.Record) error { return nil }

func (s source) Record(ctx context.Context, _ *agent.Record, _ agent.Level, out agent.Sink) error {
	for ctx.Err() == nil {
		out.Put(make([]byte, s.size), nil, 1)
		time.Sleep(time.Millisecond)
	}
	return nil
}

// agentOf runs an agent until the test ends, or stop is called.
func (s *site) agentOf(t *testing.T, host, settings string, size int) (said *lines, stop func()) {
	t.Helper()
	c, err := agent.ParseConfig([]byte("host = \"" + host + "\"\ncollectors = [\"" + s.b.Address() + "\"]\nspool = \"" +
		t.TempDir() + "\"\n" + settings))
	if err != nil {
		t.Fatal(err)
	}
	said = &lines{}
	a, err := agent.New(c, &agent.Options{Version: "test", Source: source{size}, Note: said.note})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("the agent: %v", err)
			}
			a.Close()
		})
	}
	t.Cleanup(stop)
	return said, stop
}

func quoted(name, value string) string { return name + " = \"" + value + "\"\n" }

// connect connects as the owner of a secret.
func (s *site) connect(t *testing.T, secret string, errs *lines) *nats.Conn {
	t.Helper()
	pair, public, err := key.Read(secret)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(s.b.Address(), nats.Nkey(public, pair.Sign), nats.CustomInboxPrefix(batch.Inbox(public)),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { errs.note(err.Error()) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// TestKeys: no key, a key of nobody, a key that was revoked: one line at the agent, a
// counter at the collector, and nothing is stored.
func TestKeys(t *testing.T) {
	testenv.Short(t, "it starts many brokers")
	t.Parallel()
	s := newSite(t, nil, nil)
	stranger := filepath.Join(t.TempDir(), "stranger.nk")
	if _, err := key.Create(stranger); err != nil {
		t.Fatal(err)
	}
	without, _ := s.agentOf(t, "without", "", 10)
	with, _ := s.agentOf(t, "stranger", quoted("key", stranger), 10)
	for _, said := range []*lines{without, with} {
		wait(t, "a refusal", said, func() bool { return said.count("connect: Authorization Violation") == 1 })
	}
	wait(t, "counting", &s.said, func() bool { return s.c.Fleet().Refusals.Connections >= 2 })
	secret := s.enrol(t, "db7", Agent)
	said, _ := s.agentOf(t, "db7", quoted("key", secret), 10)
	wait(t, "storing", said, func() bool { f := s.c.Fleet(); return len(f.Hosts) == 1 && f.Hosts[0].Stored > 100 })
	if err := Revoke(s.data, "db7"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.b.Refresh(); err != nil {
		t.Fatal(err)
	}
	wait(t, "being thrown out", said, func() bool { return said.count("Authorization Violation") > 0 })
	if with.count("") > 3 {
		t.Errorf("an agent that is refused again and again said:\n%s", with)
	}
}

// TestReplacedKey: an agent gets another key while it works; it goes on with the old one for the time that was
// said, and with the new one, and nothing that it sends is dropped. Then the old one is refused.
func TestReplacedKey(t *testing.T) {
	testenv.Short(t, "it starts a broker")
	t.Parallel()
	s := newSite(t, nil, nil)
	old := s.enrol(t, "db7", Agent)
	said, stop := s.agentOf(t, "db7", quoted("key", old), 10)
	stored := func() uint64 { return s.c.Fleet().Hosts[0].Stored }
	wait(t, "storing", said, func() bool { return len(s.c.Fleet().Hosts) == 1 && stored() > 100 })
	next := filepath.Join(t.TempDir(), "next.nk")
	public, err := key.Create(next)
	if err != nil {
		t.Fatal(err)
	}
	if err := Replace(s.data, &Key{Name: "db7", Role: Agent, Public: public}, time.Hour); err != nil {
		t.Fatal(err)
	}
	refresh := func() {
		t.Helper()
		if _, err := s.b.Refresh(); err != nil {
			t.Fatal(err)
		}
	}
	refresh()
	before := stored()
	wait(t, "storing with the old key", said, func() bool { return stored() > before+100 })
	if n := said.count("Authorization Violation"); n > 0 {
		t.Errorf("the agent was refused %d times with its old key", n)
	}
	stop()
	before = stored()
	said, stop = s.agentOf(t, "db7", quoted("key", next), 10)
	wait(t, "storing with the new key", said, func() bool { return stored() > before+100 })
	stop()
	if f := s.c.Fleet(); f.Refusals.Forged > 0 || f.Hosts[0].Lost > 0 {
		t.Errorf("%d messages were taken for forged, %d events lost; want none", f.Refusals.Forged, f.Hosts[0].Lost)
	}
	k, err := readKey(keyFile(s.data, "db7"))
	if err != nil {
		t.Fatal(err)
	}
	if list := k.Publics(k.Previous.Until); !slices.Equal(list, []string{public}) {
		t.Errorf("at the end of the time the keys are %s, want %s alone", list, public)
	}
	k.Previous.Until = time.Now().Add(-time.Second)
	if err := staging.WriteFile(keyFile(s.data, "db7"), keyParts, &k); err != nil {
		t.Fatal(err)
	}
	refresh()
	said, _ = s.agentOf(t, "db7", quoted("key", old), 10)
	wait(t, "a refusal of the old key", said, func() bool { return said.count("Authorization Violation") > 0 })
}

// TestReplace: what cannot be replaced is refused, and a key that was replaced is nobody else's until another
// one takes its place.
func TestReplace(t *testing.T) {
	data := t.TempDir()
	var publics []string
	for _, name := range []string{"a", "b", "c"} {
		public, err := key.Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		publics = append(publics, public)
	}
	agent := func(name string, n int) *Key { return &Key{Name: name, Role: Agent, Public: publics[n]} }
	replace := func(k *Key) error { return Replace(data, k, time.Hour) }
	steps := []struct {
		what string
		err  error
		want string // "": it works
	}{
		{"replace the key of nobody", replace(agent("db7", 0)), "db7 is not enrolled"},
		{"enrol", Enrol(data, agent("db7", 0)), ""},
		{"another role", replace(&Key{Name: "db7", Role: Reader, Public: publics[1]}), "is enrolled as agent"},
		{"the same key", replace(agent("db7", 0)), "is that of db7 already"},
		{"replace", replace(agent("db7", 1)), ""},
		{"give the old key to another", Enrol(data, agent("db8", 0)), "this key is that of db7"},
		{"replace again", replace(agent("db7", 2)), ""},
		{"give the oldest key to another", Enrol(data, agent("db8", 0)), ""},
		{"revoke", Revoke(data, "db7"), ""},
		{"give the last key to another", Enrol(data, agent("db9", 2)), ""},
		{"give the key before to another", Enrol(data, agent("db10", 1)), ""},
	}
	for _, s := range steps {
		if s.want == "" && s.err != nil || s.want != "" && (s.err == nil || !strings.Contains(s.err.Error(), s.want)) {
			t.Errorf("%s: got %v, want %q", s.what, s.err, s.want)
		}
	}
	ring := NewKeyring(data)
	if !ring.Revoked("db7") || ring.Revoked("db8") {
		t.Errorf("revoked: db7 %t, db8 %t; want db7 alone", ring.Revoked("db7"), ring.Revoked("db8"))
	}
}

// TestDamagedKey: a key file that cannot be read admits nobody, and neither keeps a revocation from
// taking effect nor a broker from starting.
func TestDamagedKey(t *testing.T) {
	testenv.Short(t, "it starts many brokers")
	t.Parallel()
	s := newSite(t, nil, nil)
	secret := s.enrol(t, "db7", Agent)
	s.enrol(t, "db8", Agent)
	said, _ := s.agentOf(t, "db7", quoted("key", secret), 10)
	wait(t, "storing", said, func() bool { f := s.c.Fleet(); return len(f.Hosts) == 1 && f.Hosts[0].Stored > 100 })
	if err := os.WriteFile(keyFile(s.data, "db8"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Revoke(s.data, "db7"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.b.Refresh(); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, "being thrown out", said, func() bool { return said.count("Authorization Violation") > 0 })
	if n := s.said.count("damaged key, whose owner cannot connect: " + keyFile(s.data, "db8")); n != 1 {
		t.Errorf("the damaged key was named %d times, want once:\n%s", n, &s.said)
	}
	data := t.TempDir()
	if err := os.MkdirAll(keyDir(data), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(keyFile(data, "db8"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := Start(&Options{Data: data, Listen: "127.0.0.1:0", Note: s.said.note})
	if err != nil {
		t.Fatalf("a broker does not start: %v", err)
	}
	b.Close()
	if err := Revoke(s.data, "db8"); err != nil {
		t.Errorf("the damaged key cannot be removed: %v", err)
	}
}

// TestOnlyItsOwn: an agent cannot send as another, cannot read what anybody sends, and a
// reader cannot send.
func TestOnlyItsOwn(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, nil)
	thief, reader := s.enrol(t, "thief", Agent), s.enrol(t, "viewer", Reader)
	var errs lines
	nc := s.connect(t, thief, &errs)
	p := batch.Batch{Kind: batch.About, Number: 1,
		Stream: staging.StreamName{BootID: strings.Repeat("0", 8) + "-0000-0000-0000-" + strings.Repeat("0", 12),
			StartNS: 1, Serial: 1}.String(), Data: []byte("{}")}
	if err := nc.Publish(batch.Batches+"db7", p.Append(nil)); err != nil {
		t.Fatal(err)
	}
	for _, subject := range []string{batch.Batches + ">", batch.Batches + "thief", ">", "_INBOX.>"} {
		if _, err := nc.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, "refusals", &errs, func() bool {
		return errs.count("Permissions Violation for Publish") == 1 &&
			errs.count("Permissions Violation for Subscription") == 4
	})
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := js.Stream(ctx, batch.Bucket); err == nil {
		t.Error("an agent can ask for the stream")
	}
	f := s.c.Fleet()
	if len(f.Hosts) != 0 || f.Refusals.Requests < 5 {
		t.Errorf("the collector says %+v", f)
	}
	if s.said.count("Violation") == 0 {
		t.Errorf("nobody was told:\n%s", &s.said)
	}

	// A grant is for reading, and that works.
	secret := s.enrol(t, "db7", Agent)
	sending := s.connect(t, secret, &errs)
	viewer := s.connect(t, reader, &errs)
	if js, err = jetstream.New(viewer); err != nil {
		t.Fatal(err)
	}
	bucket, err := js.Stream(t.Context(), batch.Bucket)
	if err != nil {
		t.Fatal(err)
	}
	cons, err := bucket.OrderedConsumer(t.Context(),
		jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverNewPolicy})
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 9)
	consume, err := cons.Consume(func(m jetstream.Msg) { got <- m.Subject() })
	if err != nil {
		t.Fatal(err)
	}
	defer consume.Stop()
	time.Sleep(100 * time.Millisecond) // the consumer is made in the background
	if err := sending.Publish(batch.Batches+"db7", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if subject := <-got; subject != batch.Batches+"db7" {
		t.Errorf("read from %s", subject)
	}
	before := errs.count("Permissions Violation for Publish")
	if err := viewer.Publish(batch.Batches+"db7", []byte("x")); err != nil {
		t.Fatal(err)
	}
	wait(t, "a refusal", &errs, func() bool { return errs.count("Permissions Violation for Publish") > before })
}

// TestFullBroker: a collector that cannot store lets the broker fill; agents are told,
// keep what they have, and send it when there is room.
func TestFullBroker(t *testing.T) {
	testenv.Short(t, "it fills a broker")
	t.Parallel()
	s := newSite(t, nil, func(o *collector.Options) { o.BrokerBytes, o.Commit = 2<<20, time.Hour })
	secret := s.enrol(t, "db7", Agent)
	said, stop := s.agentOf(t, "db7", quoted("key", secret), 20_000)
	wait(t, "a full broker", said, func() bool { return said.count("maximum bytes exceeded") > 0 })
	if n := said.count("maximum bytes exceeded"); n > 2 {
		t.Errorf("the agent said so %d times", n)
	}
	stop()
	f := s.c.Fleet()
	if f.Hosts[0].Lost != 0 {
		t.Errorf("the host is %+v", f.Hosts[0])
	}
}

// authority makes certificates for tests.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{file: filepath.Join(t.TempDir(), "ca.pem")}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) server(t *testing.T, until time.Time) *tls.Config {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "collector"},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: until,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &k.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: k}}}
}

// TestTLS: agents only send to who has a valid certificate of the authority that they
// were told.
func TestTLS(t *testing.T) {
	testenv.Short(t, "it starts many brokers")
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	good := newSite(t, ca.server(t, time.Now().Add(time.Hour)), nil)
	secret := good.enrol(t, "db7", Agent)
	said, stop := good.agentOf(t, "db7", quoted("key", secret)+quoted("ca", ca.file), 10)
	wait(t, "storing", said, func() bool { f := good.c.Fleet(); return len(f.Hosts) == 1 && f.Hosts[0].Stored > 10 })
	stop()
	wait(t, "its end", said, func() bool { return good.c.Fleet().Hosts[0].State == string(staging.ReasonStop) })
	stored := good.c.Fleet().Hosts[0].Stored
	said, _ = good.agentOf(t, "db7", quoted("key", secret)+quoted("ca", other.file), 10)
	wait(t, "a refusal", said, func() bool { return said.count("failed to verify certificate") == 1 })
	if !strings.HasPrefix(good.b.Address(), "tls://") || good.c.Fleet().Hosts[0].Stored != stored {
		t.Error("something was sent to a collector that is not trusted")
	}
	expired := newSite(t, ca.server(t, time.Now().Add(-time.Hour)), nil)
	secret = expired.enrol(t, "db7", Agent)
	said, _ = expired.agentOf(t, "db7", quoted("key", secret)+quoted("ca", ca.file), 10)
	wait(t, "a refusal", said, func() bool { return said.count("expired") == 1 })
	wait(t, "counting", &expired.said, func() bool { return expired.c.Fleet().Refusals.Connections > 0 })
	plain := newSite(t, nil, nil)
	secret = plain.enrol(t, "db7", Agent)
	plain.b.o.TLS = &tls.Config{} // so that its address is said to be tls://
	said, _ = plain.agentOf(t, "db7", quoted("key", secret)+quoted("ca", ca.file), 10)
	wait(t, "a refusal", said, func() bool { return said.count("secure connection not available") == 1 })
}

func TestEnrol(t *testing.T) {
	data, secret := t.TempDir(), filepath.Join(t.TempDir(), "k")
	public, err := key.Create(secret)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := key.Create(secret); err == nil {
		t.Error("a key was overwritten")
	}
	good := Key{Name: "db7", Role: Agent, Public: public}
	for _, bad := range []Key{
		{Name: "../x", Role: Agent, Public: public}, {Name: "db7", Role: "king", Public: public},
		{Name: "db7", Role: Agent, Public: "U" + strings.Repeat("A", 55)},
		{Name: "db7", Role: Agent, Public: public[:20]}, {Name: ">", Role: Agent, Public: public},
	} {
		if err := Enrol(data, &bad); err == nil {
			t.Errorf("enrolled: %+v", bad)
		}
	}
	if err := Enrol(data, &good); err != nil {
		t.Fatal(err)
	}
	if err := Enrol(data, &good); err == nil || !strings.Contains(err.Error(), "db7 is enrolled already, as agent") {
		t.Errorf("enrolled twice: %v", err)
	}
	err = Enrol(data, &Key{Name: "db8", Role: Agent, Public: public})
	if err == nil || !strings.Contains(err.Error(), "that of db7") {
		t.Errorf("one key for two hosts: %v", err)
	}
	if c := Config([]Key{good}); !strings.Contains(c, public) || !strings.Contains(c, `"iotape.v1.parcel.db7"`) {
		t.Errorf("for a server's configuration:\n%s", c)
	}
	if err := os.Chmod(secret, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := key.Read(secret); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others can read: %v", err)
	}
	if err := Revoke(data, "db7"); err != nil {
		t.Error(err)
	}
	if err := Revoke(data, "db7"); err == nil {
		t.Error("revoked twice")
	}
}

// TestEnrolAmongMany: whose a key is is known without the keys of all others, also in a
// directory of before, and when a kill left a link without its key.
func TestEnrolAmongMany(t *testing.T) {
	data := t.TempDir()
	public := func(name string) string {
		p, err := key.Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first, second := public("1"), public("2")
	if err := Enrol(data, &Key{Name: "db1", Role: Agent, Public: first}); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(ownersDir(data)); err != nil { // as it was made by an earlier program
		t.Fatal(err)
	}
	err := Enrol(data, &Key{Name: "db2", Role: Agent, Public: first})
	if err == nil || !strings.Contains(err.Error(), "that of db1") {
		t.Errorf("one key for two hosts, in a directory of before: %v", err)
	}
	if err := os.WriteFile(keyFile(data, "damaged"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("gone", filepath.Join(ownersDir(data), second)); err != nil {
		t.Fatal(err)
	}
	if err := Enrol(data, &Key{Name: "db2", Role: Agent, Public: second}); err != nil {
		t.Errorf("beside a key that cannot be read, and with a link that a kill left: %v", err)
	}
	err = Enrol(data, &Key{Name: "db3", Role: Agent, Public: second})
	if err == nil || !strings.Contains(err.Error(), "that of db2") {
		t.Errorf("one key for two hosts: %v", err)
	}
	if err := Revoke(data, "db2"); err != nil {
		t.Fatal(err)
	}
	if err := Enrol(data, &Key{Name: "db3", Role: Agent, Public: second}); err != nil {
		t.Errorf("the key of a host that was revoked: %v", err)
	}
}

// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// clusterCertificate makes a certificate for brokers on this machine, with an authority of its own.
func (w *world) clusterCertificate() (ca, cert, secret string) {
	w.t.Helper()
	in := func(name string) string { return filepath.Join(w.dir, name) }
	if err := os.WriteFile(in("ext"), []byte("subjectAltName=IP:127.0.0.1\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	const curve = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
	for _, line := range []string{
		"req -x509 " + curve + " -keyout ca.key -out ca.pem -days 2 -subj /CN=ca",
		"req " + curve + " -keyout n.key -out n.csr -subj /CN=n",
		"x509 -req -in n.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out n.pem -days 2 -extfile ext",
	} {
		cmd := exec.Command("openssl", strings.Fields(line)...)
		cmd.Dir = w.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			w.t.Fatalf("openssl %s: %v\n%s", line, err, out)
		}
	}
	return in("ca.pem"), in("n.pem"), in("n.key")
}

// TestBrokerOfThreeKilled kills one of three brokers, for good, while agents send: nothing is lost, and what comes
// later is stored.
func TestBrokerOfThreeKilled(t *testing.T) {
	testenv.Short(t, "it starts a cluster")
	testenv.NeedProgram(t, "openssl")
	t.Parallel()
	w := newWorld(t, 3, 0, "")
	secret := w.collectorKey()
	ca, cert, certKey := w.clusterCertificate()
	var brokers []*program
	var urls []string
	for i := range 3 {
		data := filepath.Join(w.dir, fmt.Sprintf("broker%d", i))
		if err := os.CopyFS(filepath.Join(data, "keys"), os.DirFS(filepath.Join(w.data, "keys"))); err != nil {
			t.Fatal(err)
		}
		listen := fmt.Sprintf("10.77.0.1:%d", 4222+i) // the agents know the first one
		args := []string{testenv.Iotape(t), "collector", "--broker-only", "--data", data, "--listen", listen, "--open",
			"--name", fmt.Sprintf("n%d", i), "--cluster", fmt.Sprintf("127.0.0.1:%d", 6222+i),
			"--cluster-cert", cert, "--cluster-key", certKey, "--cluster-ca", ca}
		for j := range 3 {
			if j != i {
				args = append(args, "--peer", fmt.Sprintf("127.0.0.1:%d", 6222+j))
			}
		}
		brokers = append(brokers, w.start(w.here, args...))
		urls = append(urls, "nats://"+listen)
	}
	for _, b := range brokers {
		w.ready(b)
	}
	// It is told of one broker, which is the one that is killed, and learns of the others from that one.
	c := w.start(w.here, testenv.Iotape(t), "collector", "--data", w.data, "--nats", urls[1],
		"--key", secret, "--replicas", "3", "--page", page)
	w.ready(c)
	agents := w.simulate()
	w.heard()
	w.stores()
	brokers[1].kill()
	w.stores()
	w.finish(agents, c)
	if a := w.balance("one of three brokers killed", w.hosts); a.allLost() > 0 {
		t.Errorf("lost: %v", a.lost)
	}
}

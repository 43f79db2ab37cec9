// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/testenv"
)

// TestSSH has the members of a team launched by ssh, as on different machines: each host is
// a network namespace with an sshd of its own.
func TestSSH(t *testing.T) {
	testenv.Short(t, "it starts an sshd")
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "ip")
	testenv.NeedProgram(t, "ssh-keygen")
	e := nodes(t)
	e.compile(t, "apart")
	hub := namespaces(t, "iotape-t1", "iotape-t2")
	launch := sshd(t, hub, "iotape-t1", "iotape-t2")
	team := []string{"--hosts", "iotape-t1,iotape-t2", "--launch", launch, "--listen", hub + ":0"}
	t.Run("replay", func(t *testing.T) {
		e.discovers(t, 0, "-o", "a.tape", "--", "./nodes", "read")
		e.team(t, "there", team...)
	})
	t.Run("discover", func(t *testing.T) { e.apart(t, "apart", beside(hub, 0), team...) })
	t.Run("a host that nobody reaches", func(t *testing.T) {
		out := e.fails(t, "replay", "a.tape", "--into", "none", "--order", "causal", "--hosts", "iotape-t1,nowhere",
			"--launch", launch, "--listen", hub+":0")
		if !strings.Contains(out, "iotape: host nowhere: ") || strings.Count(out, "iotape: ") != 1 {
			t.Errorf("%s", out)
		}
	})
}

// beside is the address of the i-th namespace.
func beside(hub string, i int) string { return fmt.Sprintf("%s%d", strings.TrimSuffix(hub, "1"), i+2) }

// sshd serves each namespace, and returns how to launch a command in one.
func sshd(t *testing.T, hub string, names ...string) (launch string) {
	t.Helper()
	server := filepath.Join(testenv.ModuleRoot(t), "bin", "sshd")
	testenv.NeedProgram(t, server)
	dir := t.TempDir()
	for _, key := range []string{"host", "user"} {
		if b, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
			filepath.Join(dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, b)
		}
	}
	write := func(name, format string, args ...any) string {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, fmt.Appendf(nil, format, args...), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	config := write("sshd_config", "HostKey %s/host\nAuthorizedKeysFile %s/user.pub\nStrictModes no\nUsePAM "+
		"no\nPidFile none\nUseDNS no\n", dir, dir)
	// What sshd needs of a system that it is not installed on: a directory, and a user who
	// owns nothing, in each namespace's own list of users.
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
		t.Fatal(err)
	}
	users, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	users = append(users, "\nsshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n"...)
	client := ""
	for i, name := range names {
		client += fmt.Sprintf("Host %s\n\tHostName %s\n", name, beside(hub, i))
		etc := filepath.Join("/etc/netns", name) // see ip-netns(8)
		if err := os.MkdirAll(etc, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(etc) })
		if err := os.WriteFile(filepath.Join(etc, "passwd"), users, 0o644); err != nil {
			t.Fatal(err)
		}
		// By its full name: it starts itself again for each connection.
		cmd := exec.Command("ip", "netns", "exec", name, server, "-D", "-f", config, "-E",
			filepath.Join(dir, name+".log"))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	client += fmt.Sprintf("Host *\n\tIdentityFile %s/user\n\tIdentitiesOnly yes\n\tUser "+
		"root\n\tStrictHostKeyChecking no\n\tUserKnownHostsFile /dev/null\n\tLogLevel ERROR\n\tBatchMode "+
		"yes\n\tConnectTimeout 10\n", dir)
	ssh := "ssh -F " + write("ssh_config", "%s", client) + " "
	for i, name := range names {
		for tries := 0; ; tries++ {
			b, err := exec.Command("sh", "-c", ssh+name+" true").CombinedOutput()
			if err == nil {
				break
			}
			if tries > 100 {
				said, _ := os.ReadFile(filepath.Join(dir, names[i]+".log"))
				t.Fatalf("%s: %v: %s%s", name, err, b, said)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	return ssh + "{host} {command}"
}

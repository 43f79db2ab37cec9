// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/iotape/iotape/internal/testenv"
)

// ganesha is a configuration of an NFS server in user space that finds files by their
// handles, as the kernel's does. %[1]s is where it keeps its state, %[2]s what it exports.
const ganesha = `
NFS_CORE_PARAM { Protocols = 4; NFS_Port = 20049; Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false; }
NFSV4 { RecoveryRoot = %[1]s; RecoveryBackend = fs_ng; Graceless = true; Minor_Versions = 0; Only_Numeric_Owners = true; }
NFS_KRB5 { Active_krb5 = false; }
EXPORT {
	Export_Id = 77; Path = %[2]s; Pseudo = /x; Filesystem_id = 77.1;
	Protocols = 4; Transports = TCP; Access_Type = RW; Squash = No_Root_Squash; SecType = sys, none;
	FSAL { Name = VFS; }
}
`

// overNFS is what a client does, in the server's network. (nfs-cp of 4 KiB and more fails
// with this server wherever its files are.)
const overNFS = `
U='?version=4&nfsport=20049' S=nfs://127.0.0.1/x
nfs-ls "$S/$U"
nfs-ls "$S/d$U"
nfs-cat "$S/a$U"
nfs-cat "$S/d/large$U" > got; cmp got lower/d/large
for i in 1 2 3; do
	head -c ${i}000 lower/d/large > small$i
	nfs-cp small$i "$S/d/new$i$U"
	cmp small$i lower/d/new$i
	nfs-cat "$S/d/new$i$U" | cmp - small$i
done
! nfs-cat "$S/d/gone$U" 2> /dev/null
`

// TestMountNFS exports a mount by NFS: what its clients do is recorded, with names and bytes.
func TestMountNFS(t *testing.T) {
	t.Parallel()
	testenv.NeedProgram(t, "ganesha.nfsd", "nfs-ls", "nfs-cat", "nfs-cp", "unshare", "nsenter", "ip")
	m := startMount(t)
	m.run(t, "sh", "-ec", "mkdir state lower/d; echo hello > lower/a; seq 20000 > lower/d/large")
	m.write(t, "g.conf", fmt.Sprintf(ganesha, m.path("state"), m.path("mnt")))
	// A network of its own, in which the port is free.
	server := exec.Command("unshare", "-n", "sh", "-ec",
		"ip link set lo up; exec ganesha.nfsd -F -f g.conf -L g.log -p g.pid -N NIV_EVENT")
	server.Dir = m.dir
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	stop := func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(30 * time.Second):
			_ = server.Process.Kill()
			<-ended
		}
	}
	defer func() {
		if stop != nil {
			stop()
		}
	}()
	log := func() string { b, _ := os.ReadFile(m.path("g.log")); return string(b) }
	waitFor(t, "the NFS server", func() bool {
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the NFS server has ended: %v\n%s", err, log())
		default:
		}
		return strings.Contains(log(), "NFS SERVER INITIALIZED")
	})
	within := func(script string) string {
		out, stderr, err := m.try(t, "nsenter", "-n", "-t", fmt.Sprint(server.Process.Pid), "sh", "-ec", script)
		if err != nil {
			t.Fatalf("%v: %s%s\n%s", err, out, stderr, log())
		}
		return out
	}
	out := within(overNFS)
	for _, want := range []string{" d\n", " a\n", " large\n", "hello\n", "copied 3000 bytes"} {
		contains(t, out, want)
	}
	stop()
	stop = nil
	m.unmount(t, "mnt")
	m.end(t)
	contains(t, m.said(), "lost 0")
	for filter, want := range map[string]string{
		`op = getdents64 and path glob **/lower/d`:                 `d_name="large"`,
		`op = pread64 and path glob **/lower/a`:                    `"hello\n", 6, 0) = 6`,
		`op = openat and path glob **/lower/d/large`:               `O_RDONLY`,
		`op = newfstatat and failed and path glob **/lower/d/gone`: `ENOENT`,
		`op = openat and path glob **/lower/d/new2`:                `O_CREAT|O_EXCL`,
		`op = pwrite64 and path glob **/lower/d/new1`:              `, 1000, 0) = 1000`,
		`op = pwrite64 and path glob **/lower/d/new2`:              `, 2000, 0) = 2000`,
		`op = pwrite64 and path glob **/lower/d/new3`:              `, 3000, 0) = 3000`,
		`op = fsync and path glob **/lower/d/new3`:                 `= 0`,
	} {
		text, _ := m.run(t, m.iotape, "print", "a.tape", "--filter", "comm = ganesha.nfsd and "+filter)
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %s:\n%.1000s", filter, want, text)
		}
	}
	text, _ := m.run(t, m.iotape, "query", "a.tape", "SELECT sum(bytes_read) FROM opens WHERE path LIKE '%/d/large'")
	contains(t, text, "108894")
	text, _ = m.run(t, m.iotape, "replay", "a.tape", "--into", "again", "--verify")
	contains(t, text, "all results agree")
	m.run(t, "diff", "-r", "lower", "again"+m.path("lower"))
}

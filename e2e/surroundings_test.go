// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// refuse is a program that runs another to which system calls are refused, as a container's seccomp filter does:
// refuse NUMBER... -- COMMAND.
const refuse = `
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sock_filter f[64] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)};
	int n = 1, i;
	for (i = 1; i < argc && strcmp(argv[i], "--"); i++) {
		f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, atoi(argv[i]), 0, 1);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	}
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog p = {n, f};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		return 124;
	execvp(argv[i + 1], argv + i + 1);
	return 127;
}
`

// Numbers of system calls (x86-64) that containers refuse.
const (
	nrPtrace   = "101"
	nrUnshare  = "272"
	nrVMReadv  = "310"
	nrVMWritev = "311"
	nrKcmp     = "312"
	nrBPF      = "321"
)

// dockerCaps is what Docker leaves to root.
const dockerCaps = "-all,+chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service," +
	"+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap"

// TestSurroundings records and replays where a container gives less than a machine: what is recorded is whole and
// replays, or one line says what is missing and another what to do.
func TestSurroundings(t *testing.T) {
	t.Parallel()
	testenv.Short(t, "it records in many surroundings")
	testenv.NeedRoot(t)
	testenv.NeedProgram(t, "unshare", "setpriv", "gcc")
	iotape := testenv.Iotape(t)
	refuser := filepath.Join(t.TempDir(), "refuse")
	source := refuser + ".c"
	if err := os.WriteFile(source, []byte(refuse), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-o", refuser, source).CombinedOutput(); err != nil {
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	docker := []string{"setpriv", "--bounding-set", dockerCaps, "--inh-caps", "-all",
		refuser, nrUnshare, nrBPF, nrKcmp, "--"}
	for _, c := range []struct {
		name  string
		in    []string
		fails string // what record says; "" if it works
		hint  string
	}{
		{name: "pid namespace", in: []string{"unshare", "-p", "-f", "--mount-proc"}},
		{name: "two pid namespaces", in: []string{"unshare", "-p", "-f", "--mount-proc", "unshare", "-p", "-f", "--mount-proc"}},
		{name: "/proc of another pid namespace", in: []string{"unshare", "-p", "-f"},
			fails: "/proc is that of another pid namespace", hint: "mount -t proc proc /proc"},
		{name: "no /proc", in: []string{"unshare", "-m", "sh", "-c", `mount -t tmpfs none /proc && exec "$@"`, "sh"},
			fails: "/proc is not mounted", hint: "mount -t proc proc /proc"},
		{name: "user namespace", in: []string{"unshare", "-U", "-r"}},
		{name: "user and pid namespace", in: []string{"unshare", "-U", "-r", "-p", "-f", "--mount-proc"}},
		{name: "/sys is masked", in: []string{"unshare", "-m", "sh", "-c", `mount -t tmpfs none /sys && exec "$@"`, "sh"}},
		{name: "read-only root", in: []string{"unshare", "-m", "sh", "-c",
			`mount --bind "$PWD" "$PWD" && mount -o remount,ro,bind / && cd "$PWD" && exec "$@"`, "sh"}},
		{name: "ptrace is refused", in: []string{refuser, nrPtrace, "--"},
			fails: "needs permission to trace its own child", hint: "--cap-add SYS_PTRACE"},
		{name: "other processes' memory is refused", in: []string{refuser, nrVMReadv, nrVMWritev, "--"}},
		{name: "bpf is refused", in: []string{refuser, nrBPF, "--"}},
		{name: "kcmp is refused", in: []string{refuser, nrKcmp, "--"}},
		{name: "unshare is refused", in: []string{refuser, nrUnshare, "--"}},
		{name: "Docker", in: docker},
		{name: "Docker's pid namespace", in: append([]string{"unshare", "-p", "-f", "--mount-proc"}, docker...)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, iotape, "", nil)
			run := func(args ...string) (string, error) {
				cmd := exec.Command(c.in[0], append(append(c.in[1:len(c.in):len(c.in)], iotape), args...)...)
				cmd.Dir, cmd.Env = e.dir, append(os.Environ(), e.vars...)
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			out, err := run("record", "--no-index", "-o", "x.tape", "--", "sh", "-c",
				"mkdir d && head -n 3 /etc/passwd >d/a && cp d/a d/b && (cd d && cat b b >c & wait) && rm d/a && ls d")
			if c.fails != "" {
				lines := strings.Split(strings.TrimSpace(out), "\n")
				last := lines[len(lines)-1]
				if err == nil || !strings.Contains(out, c.fails) || !strings.HasPrefix(last, "hint: ") ||
					!strings.Contains(last, c.hint) {
					t.Fatalf("record: %v\n%s\nwant %q, and a hint with %q", err, out, c.fails, c.hint)
				}
				return
			}
			if err != nil {
				t.Fatalf("record: %v\n%s", err, out)
			}
			if out, err := run("stat", "x.tape"); err != nil || !strings.Contains(out, "nothing lost") ||
				strings.Contains(out, "not recorded") {
				t.Errorf("stat: %v\n%s", err, out)
			}
			out, err = run("print", "x.tape", "--filter", "name = passwd and op = read")
			if err != nil || !strings.Contains(out, "root:x:0:0") {
				t.Errorf("print: %v\n%s\nwant what head read", err, out)
			}
			out, err = run("replay", "x.tape", "--into", "r", "--verify")
			refused := slices.Contains(c.in, nrUnshare)
			if err != nil || strings.Contains(out, "one after the other") != refused {
				t.Errorf("replay: %v\n%s\nwant that calls are made one after the other: %v", err, out, refused)
			}
		})
	}
}

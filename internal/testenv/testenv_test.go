// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// probe is a test that notes how it ended instead of ending.
type probe struct {
	testing.TB
	ended, why string
}

func (p *probe) Helper()           {}
func (p *probe) Skip(args ...any)  { p.end("skip", args) }
func (p *probe) Fatal(args ...any) { p.end("fatal", args) }
func (p *probe) end(how string, args []any) {
	p.ended, p.why = how, fmt.Sprint(args...)
	runtime.Goexit()
}

func ends(t *testing.T, f func(testing.TB)) *probe {
	p := &probe{TB: t}
	var wg sync.WaitGroup
	wg.Go(func() { f(p) })
	wg.Wait()
	return p
}

func TestSkip(t *testing.T) {
	absent := func(t testing.TB) { NeedProgram(t, "sh", "no-such-program", "/no/such/file") }
	for _, c := range []struct {
		name, ci string
		need     func(testing.TB)
		ended    string
	}{
		{"present", "", func(t testing.TB) { NeedProgram(t, "sh", "/bin/sh") }, ""},
		{"absent", "", absent, "skip"},
		{"absent in CI", "1", absent, "fatal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("IOTAPE_CI", c.ci)
			p := ends(t, c.need)
			if p.ended != c.ended {
				t.Errorf("ended by %q (%s), want %q", p.ended, p.why, c.ended)
			}
			if c.ended != "" &&
				(!strings.Contains(p.why, "no-such-program, /no/such/file") || strings.Contains(p.why, "\n")) {
				t.Errorf("reason is %q", p.why)
			}
		})
	}
}

func TestShort(t *testing.T) {
	t.Setenv("IOTAPE_CI", "1")
	want := ""
	if testing.Short() {
		want = "skip"
	}
	if p := ends(t, func(t testing.TB) { Short(t, "it sleeps") }); p.ended != want {
		t.Errorf("ended by %q, want %q", p.ended, want)
	}
}

func TestNoBPF(t *testing.T) {
	for _, c := range []struct {
		uid       int
		btf, want string
	}{
		{0, "/proc/self/exe", ""},
		{1, "/proc/self/exe", "root"},
		{0, "/no/such/file", "/no/such/file"},
	} {
		if got := noBPF(c.uid, c.btf); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("uid %d, %s: %q, want %q in it", c.uid, c.btf, got, c.want)
		}
	}
}

func TestNeedUser(t *testing.T) {
	cred := NeedUser(t)
	dir := UserDir(t, cred)
	cmd := exec.Command("sh", "-c", "id -u && echo x >file")
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := strings.TrimSpace(string(out)); got == "0" {
		t.Errorf("the command ran as root")
	}
}

func TestMountImage(t *testing.T) {
	NeedRoot(t)
	for _, fstype := range []string{"tmpfs", "ext4", "xfs", "btrfs"} {
		t.Run(fstype, func(t *testing.T) {
			var dir string
			t.Run("mounted", func(t *testing.T) {
				dir = MountImage(t, fstype, 16)
				var fs, parent syscall.Stat_t
				if err := syscall.Stat(dir, &fs); err != nil {
					t.Fatal(err)
				}
				if err := syscall.Stat(filepath.Dir(dir), &parent); err != nil {
					t.Fatal(err)
				}
				if fs.Dev == parent.Dev {
					t.Errorf("%s is no file system of its own", dir)
				}
				if err := os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o644); err != nil {
					t.Error(err)
				}
			})
			if dir == "" {
				t.Skip("not mounted")
			}
			mounts, err := os.ReadFile("/proc/self/mounts")
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(mounts), dir) {
				t.Errorf("%s is still mounted", dir)
			}
		})
	}
}

// TestBuild builds a program several times at once while it runs, and again after
// its source has changed.
func TestBuild(t *testing.T) {
	NeedProgram(t, "go")
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module x\n\ngo 1.26\n")
	say := func(word string) {
		t.Helper()
		write("main.go", `package main

import ("os"; "time")

func main() { os.Stdout.WriteString("`+word+`"); time.Sleep(time.Duration(len(os.Args)-1) * time.Minute) }
`)
	}
	out := filepath.Join(root, "bin", "x.test")
	says := func(word string) {
		t.Helper()
		if got, err := exec.Command(out).Output(); err != nil || string(got) != word {
			t.Fatalf("program says %q, %v; want %q", got, err, word)
		}
	}
	inode := func() uint64 {
		t.Helper()
		fi, err := os.Stat(out)
		if err != nil {
			t.Fatal(err)
		}
		return fi.Sys().(*syscall.Stat_t).Ino
	}

	say("one")
	if err := build(root, ".", out); err != nil {
		t.Fatal(err)
	}
	says("one")
	running := exec.CommandContext(t.Context(), out, "stay")
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	first := inode()

	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := build(root, ".", out); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if inode() != first {
		t.Errorf("a program that was up to date has been replaced")
	}

	say("two")
	if err := build(root, ".", out); err != nil {
		t.Fatal(err)
	}
	says("two")
	if err := running.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the program that ran was disturbed: %v", err)
	}

	write("main.go", "package main\n\nfunc main() { nonsense }\n")
	if err := build(root, ".", out); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("building nonsense: %v", err)
	}
	says("two")
	_ = running.Process.Kill()
	_ = running.Wait()
}

// TestIotape runs the program as an ordinary user, wherever the module is.
func TestIotape(t *testing.T) {
	Short(t, "it links iotape")
	NeedProgram(t, "go")
	cred := NeedUser(t)
	for _, path := range []string{Iotape(t), IotapeFor(t, cred)} {
		cmd := exec.Command(path, "--help")
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
		if path == Iotape(t) {
			cmd.SysProcAttr = nil
		}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "iotape") {
			t.Errorf("%s --help: %v: %s", path, err, out)
		}
	}
}

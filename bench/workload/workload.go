// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed *.sh src/*.c src/*.h
var files embed.FS

// The phases of a program, the last argument of Command.
const (
	Prep = "prep" // lays the initial state in an empty directory
	Run  = "run"  // does what is to be recorded
)

// A Program is one script.
type Program struct {
	Name string // of the script, without ".sh"
	// Needs are the programs that the script runs besides the shell and coreutils,
	// for a test to ask for before it starts.
	Needs []string
	// Racy says that the kernel decides the result: two runs from the same state
	// leave different contents, sizes aside. Other programs differ between runs
	// at most in names and bytes that hold times, inodes or process numbers.
	Racy bool
	// Kernel says that it does things that are no system calls, which only eBPF
	// capture sees.
	Kernel bool
}

// Programs returns every program, by name.
func Programs() []Program {
	git := []string{"git"}
	return []Program{
		{Name: "aio", Needs: []string{"gcc"}},
		{Name: "contend", Needs: []string{"gcc"}, Racy: true},
		{Name: "cp-a"},
		{Name: "failures", Needs: []string{"gcc"}},
		{Name: "git-basics", Needs: git},
		{Name: "git-checkout", Needs: git},
		{Name: "git-clone", Needs: git},
		{Name: "git-gc", Needs: git},
		{Name: "make-gcc", Needs: []string{"gcc", "make"}},
		{Name: "mapped", Needs: []string{"gcc"}, Kernel: true},
		{Name: "passfds", Needs: []string{"gcc"}},
		{Name: "pipeline", Needs: []string{"xargs"}},
		{Name: "python-rw", Needs: []string{"/usr/bin/python3"}},
		{Name: "rsync-a", Needs: []string{"rsync"}},
		{Name: "sqlite-journal", Needs: []string{"sqlite3"}},
		{Name: "sqlite-wal", Needs: []string{"sqlite3"}},
		{Name: "tar-tree", Needs: []string{"tar"}},
		{Name: "threads8-shared", Needs: []string{"gcc"}, Racy: true},
		{Name: "threads8", Needs: []string{"gcc"}},
		{Name: "uring", Needs: []string{"gcc"}, Kernel: true},
	}
}

// Install writes the scripts and the C sources into dir, which it makes if there
// is none, readable and executable by everyone.
func Install(dir string) error {
	return fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, name)
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		b, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		perm := os.FileMode(0o644)
		if strings.HasSuffix(name, ".sh") {
			perm = 0o755
		}
		if err := os.WriteFile(to, b, perm); err != nil {
			return fmt.Errorf("install workload %s: %w", name, err)
		}
		return os.Chmod(to, perm) // whatever the umask is
	})
}

// Command returns the arguments that run a phase of p in dir, with the scripts
// installed in installDir.
func (p *Program) Command(installDir, dir, phase string) []string {
	return []string{filepath.Join(installDir, p.Name+".sh"), dir, phase}
}

// Source returns the path of an installed C source, such as "pwriteloop".
func Source(installDir, name string) string {
	return filepath.Join(installDir, "src", name+".c")
}

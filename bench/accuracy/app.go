// SPDX-License-Identifier: Apache-2.0

package accuracy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// App is an application.
type App struct {
	Name   string
	Sync   string // what its ranks wait for each other by; "" of programs
	rounds int    // at scale 1
	own    *program
}

// program is an application that is not of src/apps.c.
type program struct {
	// ready makes in a directory of the study what every run begins with; its error says
	// what is missing.
	ready func(ctx context.Context, s *study, dir string) error
	// argv runs it on a copy of that.
	argv func(s *study, dir string, size int) []string
}

// Syncs are what ranks wait by.
var Syncs = []string{"pipe", "socket", "futex", "spin", "mpi"}

// Names of the applications: of src/apps.c, and programs.
var (
	parallel = []App{{Name: "pseudo", rounds: 256}, {Name: "pseudosync", rounds: 128}, {Name: "pseudosyncdat", rounds: 96}, {Name: "fitness", rounds: 256}, {Name: "quake", rounds: 256}}
	programs = []App{{Name: "make", rounds: 24, own: &program{readyMake, runMake}}, {Name: "postgres", rounds: 200, own: &program{readyPostgres, runPostgres}},
		{Name: "rocksdb", rounds: 5000, own: &program{readyRocks, runRocks(1)}}, {Name: "rocksdb-2", rounds: 2500, own: &program{readyRocks, runRocks(2)}}}
)

// Apps returns all applications, with each way to wait.
func Apps(syncs []string) (all []App) {
	for _, sync := range Syncs {
		if !picked(syncs, sync) {
			continue
		}
		for _, a := range parallel {
			a.Sync = sync
			all = append(all, a)
		}
	}
	return append(all, programs...)
}

// Title is what the application is called: pseudosync/spin.
func (a *App) Title() string {
	if a.Sync == "" {
		return a.Name
	}
	return a.Name + "/" + a.Sync
}

// visible reports whether what it waits for shows in wake-ups: those that spin look at
// memory, and those of MPI at sockets.
func (a *App) visible() bool { return a.Sync != "spin" && a.Sync != "mpi" }

// ranks is how many processes an application has.
func (s *study) ranks(app App) int {
	if app.visible() {
		return s.o.Ranks
	}
	return s.o.Polling
}

func (s *study) size(app App) int { return max(1, int(float64(app.rounds)*s.o.Scale)) }

// prepare returns the shell command that makes an application's files anew.
func (s *study) prepare(app App, dir string) string {
	remove := "rm -rf " + quote(dir)
	if app.own != nil {
		// Stored, as the files are that a replay begins with.
		return remove + " && cp -a " + quote(s.template(app)) + " " + quote(dir) + " && sync -f " + quote(dir)
	}
	return fmt.Sprintf("%s && mkdir %s && %s prepare %s %s %d %d", remove, quote(dir), quote(s.apps), app.Name,
		quote(dir), s.ranks(app), s.size(app))
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (s *study) template(app App) string { return filepath.Join(s.work, app.Name+".begin") }

// ready makes what an application needs once.
func (s *study) ready(ctx context.Context, app App) error {
	switch {
	case app.Sync == "mpi" && s.mpi == "":
		return fmt.Errorf("there is no MPI (scripts/setup.sh --accuracy): %s", s.noMPI)
	case app.own == nil:
		return nil
	}
	dir := s.template(app)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	return app.own.ready(ctx, s, dir)
}

// arguments are the application's command.
func (s *study) arguments(app App, dir string) []string {
	if app.own != nil {
		return app.own.argv(s, dir, s.size(app))
	}
	program, args := s.apps, []string(nil)
	if app.Sync == "mpi" {
		// Ranks that wait look at sockets again and again; on shared memory they would take
		// the processors from whoever makes the storage slow.
		program, args = s.mpi, []string{"mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl", "tcp,self",
			"-n", strconv.Itoa(s.ranks(app))}
	}
	return append(args, program, app.Name, app.Sync, dir, strconv.Itoa(s.ranks(app)), strconv.Itoa(s.size(app)),
		strconv.FormatInt(s.loops, 10))
}

// readyMake makes the sources of a program of some files.
func readyMake(_ context.Context, s *study, dir string) error {
	const files = 24
	var rules strings.Builder
	rules.WriteString("all: prog\nOBJ =")
	for i := range files {
		fmt.Fprintf(&rules, " f%d.o", i)
		text := "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
		for k := range 40 {
			text += fmt.Sprintf(
				"int f%d_%d(const char *s, int n) { int sum = %d; for (int i = 0; i < n && s[i]; i++) sum = sum * 31 "+
					"+ s[i] %% 7; return sum + (int)strlen(s); }\n", i, k, k)
		}
		if i == 0 {
			text += "int main(void) { return f0_0(\"\", 0); }\n"
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.c", i)), []byte(text), 0o644); err != nil {
			return err
		}
	}
	rules.WriteString("\nprog: $(OBJ)\n\tgcc -o $@ $(OBJ)\n%.o: %.c\n\tgcc -O1 -c -o $@ $<\n")
	return os.WriteFile(filepath.Join(dir, "Makefile"), []byte(rules.String()), 0o644)
}

func runMake(s *study, dir string, _ int) []string {
	return []string{"env", "TMPDIR=" + dir, "make", "-s", "-j", strconv.Itoa(s.o.Ranks), "-C", dir}
}

const rocks = "/usr/bin/db_bench" // of rocksdb-tools; another one may be LevelDB's

func readyRocks(context.Context, *study, string) error {
	if _, err := os.Stat(rocks); err != nil {
		return fmt.Errorf("RocksDB is missing (scripts/setup.sh --accuracy): %w", err)
	}
	return nil
}

// runRocks fills a database in some threads, with tables that are small enough for
// compaction to go on beside that. A modelled disk takes some ms for each of its writes. Writers
// that come while another one writes are put into one write of the log, so with two of them it
// depends on the storage how many there are.
func runRocks(threads int) func(*study, string, int) []string {
	return func(_ *study, dir string, size int) []string {
		return []string{rocks, "--db=" + dir, "--benchmarks=fillrandom,overwrite", "--num=" + strconv.Itoa(size),
			"--threads=" + strconv.Itoa(threads), "--value_size=400", "--compression_type=none",
			"--write_buffer_size=262144", "--target_file_size_base=262144", "--max_background_jobs=2", "--use_direct_io_for_flush_and_compaction"}
	}
}

// postgresBin returns the directory of the newest server's programs, "" if there is none.
func postgresBin() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[len(found)-1])
}

func asPostgres(script string) []string {
	return []string{"runuser", "-u", "postgres", "--", "sh", "-c", script}
}

// serve returns a script that does something with a server that runs meanwhile.
func serve(dir, do string) []string {
	bin := postgresBin()
	ctl := fmt.Sprintf("%s/pg_ctl -s -w -D %s/db", bin, quote(dir))
	return asPostgres(fmt.Sprintf(
		"%s -l %s/log -o '-k %s -c listen_addresses=' start && %s/%s; status=$?; %s -m fast stop; exit $status",
		ctl, quote(dir), dir, bin, do, ctl))
}

func readyPostgres(ctx context.Context, s *study, dir string) error {
	bin := postgresBin()
	if bin == "" {
		return fmt.Errorf("PostgreSQL is missing (scripts/setup.sh --accuracy)")
	}
	for _, argv := range [][]string{
		{"chown", "postgres", dir},
		asPostgres(fmt.Sprintf("%s/initdb -D %s/db -A trust -U postgres --no-instructions", bin, quote(dir))),
		serve(dir, fmt.Sprintf("pgbench -h %s -U postgres -i -q -s 4 postgres", quote(dir))),
	} {
		if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("make a database: %w: %.200s", err, out)
		}
	}
	return nil
}

func runPostgres(_ *study, dir string, size int) []string {
	return serve(dir, fmt.Sprintf("pgbench -h %s -U postgres -n -c 8 -j 2 -t %d postgres >/dev/null", quote(dir), size))
}

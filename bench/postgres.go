// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A service says how to use a server, once it has been started.
type service struct {
	ready  func(ctx context.Context) bool
	client []string // what is timed
	stop   func() error
}

var pgbench = &Workload{
	Name: "pgbench", Title: "PostgreSQL, the server recorded, pgbench with 4 clients, %s transactions each",
	Class: Program, size: 800, slowSize: 100,
	absent: func(*tools) string {
		if postgresDir() == "" {
			return "PostgreSQL is missing (scripts/setup.sh --bench)"
		}
		if _, err := user.Lookup("postgres"); os.Geteuid() == 0 && err != nil {
			return "PostgreSQL does not run as root, and there is no user postgres"
		}
		return ""
	},
	prepare: func(ctx context.Context, _ *tools, dir string, _ int) error {
		if os.Geteuid() == 0 {
			if err := run(ctx, dir, "chown", "postgres", dir); err != nil {
				return err
			}
		}
		initdb := asPostgres(filepath.Join(postgresDir(), "initdb"), "-D", filepath.Join(dir, "db"), "-A", "trust",
			"-U", "postgres", "--no-instructions")
		if err := run(ctx, dir, initdb[0], initdb[1:]...); err != nil {
			return err
		}
		return fillPostgres(ctx, dir)
	},
	job: func(_ *tools, dir string, size int) *job {
		return &job{argv: server(dir),
			service: postgresService(dir, "-n", "-c", "4", "-j", "2", "-t", strconv.Itoa(size), "postgres")}
	},
}

// fillPostgres makes pgbench's tables, in a server without the recorder.
func fillPostgres(ctx context.Context, dir string) error {
	argv, s := server(dir), postgresService(dir, "-i", "-q", "-s", "4", "postgres")
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, environment(dir, nil)
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	err := s.await(ctx, ended)
	if err == nil {
		err = run(ctx, dir, s.client[0], s.client[1:]...)
	}
	if stop := s.stop(); stop != nil {
		err = errors.Join(err, stop, cmd.Process.Kill())
	}
	<-ended
	return err
}

// await waits until the server answers.
func (s *service) await(ctx context.Context, ended <-chan struct{}) error {
	for limit := time.After(time.Minute); !s.ready(ctx); {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ended:
			return errors.New("the server has ended")
		case <-limit:
			return errors.New("the server does not answer after a minute")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func server(dir string) []string {
	return asPostgres(filepath.Join(postgresDir(), "postgres"), "-D", filepath.Join(dir, "db"),
		"-k", dir, "-c", "listen_addresses=")
}

func postgresService(dir string, args ...string) *service {
	return &service{
		ready: func(ctx context.Context) bool {
			return run(ctx, dir, filepath.Join(postgresDir(), "pg_isready"), "-q", "-h", dir, "-U", "postgres") == nil
		},
		client: append([]string{filepath.Join(postgresDir(), "pgbench"), "-h", dir, "-U", "postgres"}, args...),
		stop: func() error {
			b, err := os.ReadFile(filepath.Join(dir, "db", "postmaster.pid"))
			if err != nil {
				return fmt.Errorf("stop the server: %w", err)
			}
			first, _, _ := strings.Cut(string(b), "\n")
			pid, err := strconv.Atoi(first)
			if err != nil || pid <= 1 {
				return fmt.Errorf("stop the server: its pid is %q", first)
			}
			return syscall.Kill(pid, syscall.SIGINT) // a fast shutdown
		},
	}
}

// asPostgres returns a command line that runs argv as a user who may run a server.
func asPostgres(argv ...string) []string {
	if os.Geteuid() != 0 {
		return argv
	}
	return append([]string{"runuser", "-u", "postgres", "--"}, argv...)
}

// postgresDir returns the directory of the newest server's programs, which Debian
// does not put on the PATH; "" if there is none.
func postgresDir() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres") // the pattern is valid
	if len(found) == 0 {
		return ""
	}
	return filepath.Dir(found[len(found)-1])
}

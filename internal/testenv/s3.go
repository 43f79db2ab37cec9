// SPDX-License-Identifier: Apache-2.0

package testenv

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// S3Server starts a real S3 server (Versity's gateway, over a directory) with a bucket, and
// sets the environment for it. It returns its address and a function that ends it.
func S3Server(t testing.TB, bucket string) (stop func()) {
	t.Helper()
	program := filepath.Join(ModuleRoot(t), "bin", "versitygw")
	NeedProgram(t, program)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, bucket), 0o777); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(program, "--port", addr, "posix", dir)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY=tester", "ROOT_SECRET_KEY=secret-of-the-tests", "VGW_QUIET=true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func() {
		if cmd.ProcessState == nil {
			cmd.Process.Kill()
			cmd.Wait()
		}
	}
	t.Cleanup(stop)
	t.Setenv("AWS_ENDPOINT_URL", "http://"+addr)
	t.Setenv("AWS_ACCESS_KEY_ID", "tester")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret-of-the-tests")
	t.Setenv("AWS_REGION", "us-east-1")
	for range 200 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return stop
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	t.Fatalf("the server does not answer: %s", log.String())
	return nil
}

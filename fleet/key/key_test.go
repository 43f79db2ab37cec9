// SPDX-License-Identifier: Apache-2.0

package key

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/pipe/wholefile"
)

// TestVerify: a signature is of one key and one digest, and whatever is no key verifies nothing.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	public, err := Create(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := Create(filepath.Join(dir, "b"))
	if err != nil {
		t.Fatal(err)
	}
	pair, same, err := Read(filepath.Join(dir, "a"))
	if err != nil || same != public {
		t.Fatalf("read %s, want %s: %v", same, public, err)
	}
	digest := []byte("a digest")
	signature, err := pair.Sign(digest)
	if err != nil {
		t.Fatal(err)
	}
	if !Verify(public, digest, signature) {
		t.Error("what was signed does not verify")
	}
	if Verify(other, digest, signature) || Verify(public, []byte("another"), signature) ||
		Verify(public, digest, signature[1:]) || Verify("", digest, signature) || Verify("Ux", digest, nil) {
		t.Error("what was not signed verifies")
	}
	if err := os.Chmod(filepath.Join(dir, "a"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(filepath.Join(dir, "a")); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a secret that others may read: %v", err)
	}
}

// TestReadStrange: what is no file of the user's alone is no key, and is not waited for.
func TestReadStrange(t *testing.T) {
	name := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{name, "/dev/zero", t.TempDir()} {
		if _, _, err := Read(name); !errors.Is(err, wholefile.ErrNotRegular) {
			t.Errorf("%s: %v, want %v", name, err, wholefile.ErrNotRegular)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to another user")
	}
	theirs := filepath.Join(t.TempDir(), "theirs")
	if _, err := Create(theirs); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(theirs, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Read(theirs); err == nil || !strings.Contains(err.Error(), "chown") {
		t.Errorf("a secret of another user: %v", err)
	}
}

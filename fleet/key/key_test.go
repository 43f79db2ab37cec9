// SPDX-License-Identifier: Apache-2.0

package key

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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

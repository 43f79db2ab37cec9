// SPDX-License-Identifier: Apache-2.0

package key

import (
	"crypto/sha256"
	"path/filepath"
	"testing"
)

// BenchmarkVerify is what a collector does more for a batch because it is signed.
func BenchmarkVerify(b *testing.B) {
	name := filepath.Join(b.TempDir(), "k")
	public, err := Create(name)
	if err != nil {
		b.Fatal(err)
	}
	pair, _, err := Read(name)
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []int{1 << 10, 512 << 10} {
		data := make([]byte, size)
		sum := sha256.Sum256(data)
		signature, err := pair.Sign(sum[:])
		if err != nil {
			b.Fatal(err)
		}
		b.Run(map[int]string{1 << 10: "size=1KiB", 512 << 10: "size=512KiB"}[size], func(b *testing.B) {
			for b.Loop() {
				sum := sha256.Sum256(data)
				if !Verify(public, sum[:], signature) {
					b.Fatal("the signature is wrong")
				}
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"fmt"

	"github.com/zeebo/blake3"
)

// annotationsMagic begins the file of annotations:
//
//	file = magic(8) BLAKE3 of the tape's identity(32) payload BLAKE3 of all before(32)
//
// Package causal says what the payload is.
const annotationsMagic = "iotape A"

const (
	annotationsHeadBytes = len(annotationsMagic) + 32
	// What annotations can take: a few numbers for each event, and some that are of
	// many dependencies.
	annotationBytesPerEvent = 64
	annotationBytes         = 16 << 20
)

// SetAnnotations stores the parts of a payload as the tape's annotations, in place of
// those that it has.
func (t *Tape) SetAnnotations(payload ...[]byte) error {
	id := blake3.Sum256([]byte(t.Identity()))
	b := append([]byte(annotationsMagic), id[:]...)
	for _, p := range payload {
		b = append(b, p...)
	}
	sum := blake3.Sum256(b)
	return replace(t.dir, AnnotationsName, append(b, sum[:]...))
}

// Annotations returns the payload of the tape's annotations. The error wraps
// fs.ErrNotExist if there are none, and ErrCorrupt if they are damaged or not those of
// this tape.
func (t *Tape) Annotations() ([]byte, error) {
	limit := annotationBytes + annotationBytesPerEvent*int64(min(t.manifest.Counts.Events, 1<<32))
	b, err := readLimited(t.dir, AnnotationsName, limit)
	if err != nil {
		return nil, fmt.Errorf("read annotations: %w", err)
	}
	end := len(b) - 32
	if end < annotationsHeadBytes || string(b[:len(annotationsMagic)]) != annotationsMagic {
		return nil, fmt.Errorf("%s: %w", AnnotationsName, ErrCorrupt)
	}
	if sum := blake3.Sum256(b[:end]); !bytes.Equal(sum[:], b[end:]) {
		return nil, fmt.Errorf("%s: hash differs: %w", AnnotationsName, ErrCorrupt)
	}
	if id := blake3.Sum256([]byte(t.Identity())); !bytes.Equal(id[:], b[len(annotationsMagic):annotationsHeadBytes]) {
		return nil, fmt.Errorf("%s belongs to another state of the tape: %w", AnnotationsName, ErrCorrupt)
	}
	return b[annotationsHeadBytes:end], nil
}

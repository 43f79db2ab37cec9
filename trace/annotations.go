// SPDX-License-Identifier: Apache-2.0

package trace

// annotationsMagic begins the file of annotations, an envelope. Package causal says what the payload is.
const annotationsMagic = "iotape A"

// What annotations can take: a few numbers for each event, and some that are of many dependencies.
const (
	annotationBytesPerEvent = 64
	annotationBytes         = 16 << 20
)

// SetAnnotations stores the parts of a payload as the tape's annotations, in place of
// those that it has.
func (t *Tape) SetAnnotations(payload ...[]byte) error {
	return setEnvelope(t.dir, AnnotationsName, annotationsMagic, t.Identity(), payload...)
}

// Annotations returns the payload of the tape's annotations. The error wraps
// fs.ErrNotExist if there are none, and ErrCorrupt if they are damaged or not those of
// this tape.
func (t *Tape) Annotations() ([]byte, error) {
	limit := annotationBytes + annotationBytesPerEvent*int64(min(t.manifest.Counts.Events, 1<<32))
	return envelope(t.dir, AnnotationsName, annotationsMagic, t.Identity(), limit)
}

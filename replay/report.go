package replay

import (
	"iotape/event"
	"iotape/tree"
)

// MaxMismatches limits the differences that a Report lists.
const MaxMismatches = 1000

// Report is what came of a replay.
type Report struct {
	Events     uint64            `json:"events"`
	Replayed   uint64            `json:"replayed"`   // by making the call
	Emulated   uint64            `json:"emulated"`   // modelled only
	Skipped    uint64            `json:"skipped"`    // not in the catalogue
	ElapsedNS  int64             `json:"elapsed_ns"` // of the run alone
	Different  uint64            `json:"different"`  // calls' results that differ
	Following  uint64            `json:"following"`  // of these, on files that could not be opened
	Uncompared uint64            `json:"uncompared"` // reads of bytes that the tape does not have, or that depend on such
	Mismatches []Mismatch        `json:"mismatches"`
	Tree       []tree.Difference `json:"tree"`         // final tree against the recording's
	TreePaths  int               `json:"tree_paths"`   // compared
	TreeMadeUp int               `json:"tree_made_up"` // of these, without their content, for the same reason
	Skeleton   int               `json:"skeleton"`     // entries made before the first event
	Problems   []string          `json:"problems"`     // what the target did not allow
	Aborted    bool              `json:"aborted"`      // at the first difference, as asked
	Timing     *Timing           `json:"timing"`
}

// Mismatch is a result that is not as recorded.
type Mismatch struct {
	Seq      uint64 `json:"seq"` // of the event
	TID      uint32 `json:"tid"`
	Op       string `json:"op"`
	Path     string `json:"path,omitempty"`
	Field    string `json:"field"`
	Expected string `json:"expected"`
	Got      string `json:"got"`
}

// OK reports whether everything agreed.
func (r *Report) OK() bool { return r.Different == 0 && len(r.Tree) == 0 }

func newReport() *Report {
	return &Report{Mismatches: []Mismatch{}, Tree: []tree.Difference{}, Problems: []string{}}
}

func (r *Report) count(t *task) {
	r.Events++
	switch {
	case t.action != emulate:
		r.Replayed++
	case t.op == event.OpUnknown && t.ev.Kind == event.Call:
		r.Skipped++
	default:
		r.Emulated++
	}
}

func (r *Report) mismatch(t *task, field, want, got string, follows bool) {
	r.Different++
	if follows {
		r.Following++
		return
	}
	if len(r.Mismatches) >= MaxMismatches {
		return
	}
	m := Mismatch{Seq: t.ev.Seq, TID: t.ev.TID, Op: t.op.String(), Field: field, Expected: want, Got: got}
	if len(t.ev.Paths) > 0 {
		m.Path = t.ev.Paths[0].Abs
	} else if f := t.ev.FileArg(0); f != nil {
		m.Path = f.Path
	}
	r.Mismatches = append(r.Mismatches, m)
}

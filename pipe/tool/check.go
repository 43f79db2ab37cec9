// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/iotape/iotape/pipe"
	"github.com/iotape/iotape/pipe/chain"
)

// Checked is what Check found. Its JSON is the output of iotape pipe --check --json.
type Checked struct {
	Serial  string      `json:"serial"`
	Chain   string      `json:"chain"`
	Good    uint64      `json:"good"`
	Bad     uint64      `json:"bad"`
	Bytes   int64       `json:"bytes"` // plain ones, of good blocks, if all layers could be undone
	Faults  []FaultLine `json:"faults"`
	Lacking string      `json:"lacking,omitempty"` // why not all layers were looked at
	Found   int         `json:"-"`                 // how many faults there are; Faults lists the first MaxFaults
}

// A FaultLine is one fault.
type FaultLine struct {
	Kind   string `json:"kind"`
	Block  uint64 `json:"block"`
	Last   uint64 `json:"last,omitempty"`
	Offset int64  `json:"offset"`
	Text   string `json:"text"`
}

// MaxFaults bounds what is listed.
const MaxFaults = 10000

// Check reads a piped stream with the keys of the context (chain.WithKeys) and says what is
// wrong with its blocks.
func Check(ctx context.Context, in *os.File) (*Checked, error) {
	res := &Checked{Faults: []FaultLine{}}
	open := func(h *pipe.Header) ([]pipe.Decoder, error) {
		d, lacking, err := chain.KeysOf(ctx).OpenSome(h)
		if lacking != nil {
			res.Lacking = lacking.Error()
		}
		return d, err
	}
	o := &pipe.ReadOptions{Rest: !isDevice(in), OnFault: func(f *pipe.Fault) error {
		if res.Found++; res.Found <= MaxFaults {
			res.Faults = append(res.Faults, FaultLine{f.Kind.String(), f.Block, f.Last, f.Offset, f.Error()})
		}
		return ctx.Err()
	}}
	r, err := pipe.NewReader(contextReader{ctx, in}, open, o)
	if err != nil {
		return nil, err
	}
	if err := r.Discard(); err != nil {
		return nil, err
	}
	res.Serial, res.Chain = fmt.Sprintf("%016x", r.Header().Serial), r.Header().Chain()
	res.Good, res.Bad, res.Bytes = r.Counts()
	return res, nil
}

// WriteJSON writes it as one object.
func (res *Checked) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(res)
}

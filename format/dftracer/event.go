// SPDX-License-Identifier: Apache-2.0

package dftracer

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
)

// line is an event. Old versions write numbers as strings.
type line struct {
	Name string                     `json:"name"`
	Cat  string                     `json:"cat"`
	Ph   phase                      `json:"ph"`
	PID  number                     `json:"pid"`
	TID  number                     `json:"tid"`
	TS   number                     `json:"ts"`  // µs since 1970
	Dur  *number                    `json:"dur"` // µs; nil if the line does not say it
	Args map[string]json.RawMessage `json:"args"`
}

// phase is what an event is, by a letter: X, of some duration; M, of meaning; C, a counter.
type phase string

// phases are the numbers that DFTracer writes instead since its version 2.
var phases = map[string]phase{"1": "X", "2": "C", "3": "C", "4": "M"}

func (p *phase) UnmarshalJSON(b []byte) error {
	if known, ok := phases[string(b)]; ok {
		*p = known
		return nil
	}
	if len(b) > 0 && b[0] != '"' {
		*p = phase(b)
		return nil
	}
	return json.Unmarshal(b, (*string)(p))
}

// number is an integer that may stand in quotes.
type number int64

func (n *number) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(string(bytes.Trim(b, `"`)), 10, 64)
	if err != nil {
		// Hashes and sizes have 64 bits.
		u, err := strconv.ParseUint(string(bytes.Trim(b, `"`)), 10, 64)
		if err != nil {
			return err
		}
		v = int64(u)
	}
	*n = number(v)
	return nil
}

// maxMicro is the largest time and duration, in µs.
const maxMicro = math.MaxInt64 / 4000

// parse takes a line apart; false if it is no event. Lines end in a comma in traces
// that were made for other viewers.
func parse(b []byte, l *line) bool {
	b = bytes.TrimSuffix(bytes.TrimSpace(b), []byte(","))
	if len(b) == 0 || b[0] != '{' || json.Unmarshal(b, l) != nil || l.Name == "" {
		return false
	}
	return l.PID >= 0 && l.PID <= math.MaxUint32 && l.TID >= 0 &&
		l.TS >= 0 && l.TS <= maxMicro && (l.Dur == nil || *l.Dur >= 0 && *l.Dur <= maxMicro)
}

// int returns an argument that is a number.
func (l *line) int(key string) (int64, bool) {
	var n number
	b, ok := l.Args[key]
	if !ok || n.UnmarshalJSON(b) != nil {
		return 0, false
	}
	return int64(n), true
}

// string returns an argument that is a string, "" if there is none.
func (l *line) string(key string) string {
	var s string
	if b, ok := l.Args[key]; !ok || json.Unmarshal(b, &s) != nil {
		return ""
	}
	return s
}

// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"slices"

	"github.com/iotape/iotape/event"
	"github.com/iotape/iotape/predicate"
)

// What a row of the programs' table says of the filter (include/prefilter.h).
const (
	rowLet    = 0
	RowRefuse = 1 // none of the operation's calls
	rowSteps  = 2 // + the step to begin at
)

// PutPrefilter writes a prefilter's steps where the programs walk them. No row of the table may
// lead to them. loaded is the prefilter that the programs were loaded with: what the names of
// open files end in is known of its suffixes only, and where processes run of its places, so a test
// of another lets the call through.
func PutPrefilter(shared *Common, s, loaded *predicate.Prefilter) {
	if s == nil {
		return
	}
	for i, st := range s.Steps {
		p := PrefilterStep{Field: uint8(st.Field), Yes: st.Yes, No: st.No, Lo: st.Lo, Hi: st.Hi}
		switch st.Field {
		case predicate.PrefilterSuffix:
			p.Lo = int64(slices.Index(suffixesOf(loaded), s.Suffixes[st.Lo]))
		case predicate.PrefilterPlace:
			p.Lo = int64(slices.IndexFunc(placesOf(loaded), func(x predicate.PrefilterPlaces) bool {
				return x.Text == s.Places[st.Lo].Text
			}))
		default:
			shared.Prefilter[i] = p
			continue
		}
		if p.Lo < 0 {
			p = PrefilterStep{Field: uint8(predicate.PrefilterPID), Yes: predicate.PrefilterPass,
				No: predicate.PrefilterPass}
		}
		shared.Prefilter[i] = p
	}
}

// Suffixes returns the programs' form of a prefilter's suffixes, and how many there are: each
// is at the end of 16 bytes, as two words.
func Suffixes(s *predicate.Prefilter) (list [predicate.MaxPrefilterSuffixes]Suffix, n uint32) {
	for i, text := range suffixesOf(s) {
		var value, mask [16]byte
		for k := range len(text) {
			at := len(value) - len(text) + k
			value[at], mask[at] = text[k], 0xff
		}
		le := binary.LittleEndian
		list[i].Value = [2]uint64{le.Uint64(value[:]), le.Uint64(value[8:])}
		list[i].Mask = [2]uint64{le.Uint64(mask[:]), le.Uint64(mask[8:])}
		n++
	}
	return list, n
}

func placesOf(s *predicate.Prefilter) []predicate.PrefilterPlaces {
	if s == nil {
		return nil
	}
	return s.Places
}

func suffixesOf(s *predicate.Prefilter) []string {
	if s == nil {
		return nil
	}
	return s.Suffixes
}

// PrefilterRow returns what the table says of a call that is recorded (Spec.Prefilter). What has
// been written of it at its entry cannot be taken back, and who was woken up has to be in a call.
func PrefilterRow(s *predicate.Prefilter, wakeups bool, op event.Op, flags uint16) uint16 {
	if s == nil {
		return rowLet
	}
	entry, ok := s.Entries[op]
	const atEntry = specEntry | specBefore | specAIOSubmit | specAIOEnd
	switch {
	case !ok || entry == predicate.PrefilterPass:
	case entry == predicate.PrefilterDrop && !wakeups:
		return RowRefuse
	case entry >= 0 && flags&atEntry == 0:
		return rowSteps + uint16(entry)
	}
	return rowLet
}

// ExactRow returns what the table says of a call that is counted: all of the filter.
func ExactRow(s *predicate.Prefilter, op event.Op) uint16 {
	if s == nil {
		return rowLet
	}
	switch entry, ok := s.Entries[op]; {
	case ok && entry >= 0:
		return rowSteps + uint16(entry)
	case ok && entry == predicate.PrefilterDrop:
		return RowRefuse
	}
	return rowLet
}

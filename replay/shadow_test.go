package replay

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"iotape/event"
	"iotape/replay/effect"
)

// A read is of kept bytes only if the last writes of all of them were of what it found:
// against a model of the file by sector.
func TestShadow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShadow()
		const sectors = 3 * shadowSectors
		type origin struct {
			chunk uint64
			off   uint32
		}
		var model [sectors]origin // chunk 0: not known
		stored := func(chunk uint64, off uint32, n int64) []byte {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(chunk*31 + uint64(off+uint32(i))/7)
			}
			return b
		}
		chunk := uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			first := rapid.Int64Range(0, sectors-1).Draw(t, "first")
			n := rapid.Int64Range(1, min(10, sectors-first)).Draw(t, "sectors")
			ev := &event.Event{Op: event.OpPwrite64, Offset: first * sectorBytes, Ret: n * sectorBytes, Count: n * sectorBytes,
				Files: []event.File{{Known: true, Ino: 7, Mode: 0o100644}}}
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0: // something else writes
				s.see(&task{ev: event.Event{Op: event.OpFtruncate, Files: ev.Files}})
				clear(model[:])
			case 1: // of which the tape has nothing
				s.forgetRange(effect.InodeOf(&ev.Files[0]), ev.Offset, ev.Ret)
				for k := first / shadowSectors * shadowSectors; k < min((first+n+shadowSectors-1)/shadowSectors*shadowSectors, sectors); k++ {
					model[k] = origin{}
				}
			case 2, 3, 4:
				chunk++
				off := uint32(rapid.IntRange(0, 2).Draw(t, "off") * sectorBytes)
				b := &event.Buf{Len: ev.Ret, Refs: []event.Ref{{Chunk: chunk, Off: off, Len: uint32(ev.Ret)}}}
				keep := s.wrote(ev, b)
				if keep != nil {
					copy(keep, stored(chunk, off, ev.Ret))
				}
				if across := first/shadowSectors != (first+n-1)/shadowSectors; across != (keep == nil) {
					t.Fatalf("sectors %d+%d kept: %v", first, n, keep != nil)
				}
				for k := int64(0); k < n; k++ {
					if keep != nil {
						model[first+k] = origin{chunk, off + uint32(k*sectorBytes)}
					}
				}
				if keep == nil {
					for k := first / shadowSectors * shadowSectors; k < min((first+n+shadowSectors-1)/shadowSectors*shadowSectors, sectors); k++ {
						model[k] = origin{}
					}
				}
			default:
				ref := event.Ref{Chunk: uint64(rapid.IntRange(1, int(chunk)+1).Draw(t, "chunk")), Len: uint32(ev.Ret)}
				if m := model[first]; m.chunk != 0 && rapid.Bool().Draw(t, "as written") {
					ref.Chunk, ref.Off = m.chunk, m.off
				}
				want := first/shadowSectors == (first+n-1)/shadowSectors
				for k := int64(0); k < n; k++ {
					want = want && model[first+k] == (origin{ref.Chunk, ref.Off + uint32(k*sectorBytes)})
				}
				ev.Op = event.OpPread64
				got := s.read(ev, &event.Buf{Len: ev.Ret, Refs: []event.Ref{ref}})
				if (got != nil) != want {
					t.Fatalf("read of sectors %d+%d from the kept bytes: %v, want %v", first, n, got != nil, want)
				}
				if got != nil && !bytes.Equal(got, stored(ref.Chunk, ref.Off, ev.Ret)) {
					t.Fatal("the kept bytes are others")
				}
			}
		}
	})
}

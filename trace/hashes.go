// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
)

// HashReader tells the hashes of chunks without reading their bytes. It is not safe
// for concurrent use.
type HashReader struct {
	file   *blockFile
	tables map[int][]byte
	bytes  int
}

// hashReaderBytes bounds the tables that a HashReader keeps: those of 4 GiB of content.
const hashReaderBytes = 40 << 20

// NewHashReader returns a HashReader of the tape's content.
func (t *Tape) NewHashReader() *HashReader {
	return &HashReader{file: t.content, tables: map[int][]byte{}}
}

// Hash returns the BLAKE3-256 of a chunk, as stored. Unlike Tape.ChunkHash it does not
// see damage to the pack that a chunk is in; Tape.Check does.
func (r *HashReader) Hash(id uint64) (hash [32]byte, err error) {
	i, ok := r.file.find(id)
	if !ok {
		return hash, fmt.Errorf("chunk %d of %d: %w", id, r.file.end-1, ErrCorrupt)
	}
	table, ok := r.tables[i]
	if !ok {
		if table, err = r.table(i); err != nil {
			return hash, err
		}
		if r.bytes += len(table); r.bytes > hashReaderBytes {
			clear(r.tables)
			r.bytes = len(table)
		}
		r.tables[i] = table
	}
	copy(hash[:], table[(id-r.file.blocks[i].first)*packEntryBytes:])
	return hash, nil
}

// table reads the table of a pack.
func (r *HashReader) table(i int) ([]byte, error) {
	e := &r.file.blocks[i]
	var h blockHeader
	b := make([]byte, blockHeaderBytes)
	_, err := r.file.r.ReadAt(b, e.off)
	if err == nil {
		err = h.parse(b, r.file.kind.magic)
	}
	if err == nil {
		err = h.validate(r.file.kind)
	}
	if err == nil && (h.items != e.items || uint64(h.table) != uint64(h.items)*packEntryBytes) {
		err = fmt.Errorf("pack of %d chunks, %d in the index, with a table of %d bytes: %w", h.items, e.items, h.table,
			ErrCorrupt)
	}
	if err != nil {
		return nil, r.file.at(e, err)
	}
	b = make([]byte, h.table)
	if _, err := r.file.r.ReadAt(b, e.off+blockHeaderBytes); err != nil {
		return nil, r.file.at(e, err)
	}
	return b, nil
}

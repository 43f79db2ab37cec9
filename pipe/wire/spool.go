// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"os"
)

// spool keeps the blocks that a listener has not acknowledged, in memory and, when that
// is full, in a file. It is not safe for concurrent use.
type spool struct {
	first  uint64 // number of the first block
	blocks []spooled
	memory int64 // bytes
	most   int64 // bytes in memory, at most

	file     *os.File // nil is none
	inFile   int      // blocks
	fileEnd  int64
	fileMost int64
}

type spooled struct {
	data []byte // nil: in the file
	off  int64
	n    int
}

// openFile makes the file. It removes the name, so that a killed client leaves
// nothing behind.
func (s *spool) openFile(name string) (err error) {
	if s.file, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return os.Remove(name)
}

// end is the number after the last block.
func (s *spool) end() uint64 { return s.first + uint64(len(s.blocks)) }

// room reports whether the spool can keep a block of n bytes. It can always keep one block.
func (s *spool) room(n int) bool {
	return len(s.blocks) == 0 || s.memory+int64(n) <= s.most || s.file != nil && s.fileEnd+int64(n) <= s.fileMost
}

// push keeps a block. The caller has checked the room.
func (s *spool) push(b []byte) error {
	if len(s.blocks) == 0 || s.memory+int64(len(b)) <= s.most {
		s.blocks = append(s.blocks, spooled{data: append([]byte(nil), b...), n: len(b)})
		s.memory += int64(len(b))
		return nil
	}
	if _, err := s.file.WriteAt(b, s.fileEnd); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	s.blocks = append(s.blocks, spooled{off: s.fileEnd, n: len(b)})
	s.fileEnd += int64(len(b))
	s.inFile++
	return nil
}

// get returns a kept block.
func (s *spool) get(number uint64) ([]byte, error) {
	b := s.blocks[number-s.first]
	if b.data != nil {
		return b.data, nil
	}
	data := make([]byte, b.n)
	if _, err := s.file.ReadAt(data, b.off); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	return data, nil
}

// drop removes the blocks before a number.
func (s *spool) drop(before uint64) {
	for s.first < before && len(s.blocks) > 0 {
		if b := &s.blocks[0]; b.data != nil {
			s.memory -= int64(b.n)
			b.data = nil
		} else {
			s.inFile--
		}
		s.blocks = s.blocks[1:]
		s.first++
	}
	if s.inFile == 0 && s.fileEnd > 0 {
		s.fileEnd = 0
		_ = s.file.Truncate(0) // after an error too, the space is used again
	}
}

func (s *spool) close() {
	if s.file != nil {
		s.file.Close()
	}
}

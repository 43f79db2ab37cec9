// SPDX-License-Identifier: Apache-2.0

package snia

import (
	"encoding/binary"

	"github.com/iotape/iotape/format"
)

// member is a number of a structure as it lies in memory on x86-64, and the field
// that holds it.
type member struct {
	field     string
	off, size int
	time      bool // seconds here and nanoseconds (or microseconds) in the 8 bytes after; the field has 2^-32 s
}

// members lists the structures that are their fields and nothing more.
var members = map[string]struct {
	bytes  int
	micro  bool // times have microseconds
	fields []member
}{
	"STAT": {bytes: 144, fields: []member{
		{"stat_result_dev", 0, 8, false}, {"stat_result_ino", 8, 8, false}, {"stat_result_nlink", 16, 8, false}, {"stat_result_mode", 24, 4, false},
		{"stat_result_uid", 28, 4, false}, {"stat_result_gid", 32, 4, false}, {"stat_result_rdev", 40, 8, false}, {"stat_result_size", 48, 8, false},
		{"stat_result_blksize", 56, 8, false}, {"stat_result_blocks", 64, 8, false},
		{"stat_result_atime", 72, 8, true}, {"stat_result_mtime", 88, 8, true}, {"stat_result_ctime", 104, 8, true},
	}},
	"STATFS": {bytes: 120, fields: []member{
		{"statfs_result_type", 0, 8, false}, {"statfs_result_bsize", 8, 8, false}, {"statfs_result_blocks", 16, 8, false}, {"statfs_result_bfree", 24, 8, false},
		{"statfs_result_bavail", 32, 8, false}, {"statfs_result_files", 40, 8, false}, {"statfs_result_ffree", 48, 8, false}, {"statfs_result_fsid", 56, 4, false},
		{"statfs_result_namelen", 64, 8, false}, {"statfs_result_frsize", 72, 8, false}, {"statfs_result_flags", 80, 8, false},
	}},
	"TIMEVAL2":  {bytes: 32, micro: true, fields: []member{{"access_time", 0, 8, true}, {"mod_time", 16, 8, true}}},
	"TIMESPEC2": {bytes: 32, fields: []member{{"access_time", 0, 8, true}, {"mod_time", 16, 8, true}}},
	"FDPAIR":    {bytes: 8, fields: []member{{"read_descriptor", 0, 4, false}, {"write_descriptor", 4, 4, false}}},
	"RLIMIT":    {bytes: 16, fields: []member{{"resource_soft_limit", 0, 8, false}, {"resource_hard_limit", 8, 8, false}}},
	"FLOCK": {bytes: 32, fields: []member{
		{"lock_type", 0, 2, false}, {"lock_whence", 2, 2, false}, {"lock_start", 8, 8, false}, {"lock_length", 16, 8, false}, {"lock_pid", 24, 4, false},
	}},
}

// isLock reports whether a command of fcntl has a struct flock (fcntl(2)).
func isLock(cmd uint64) bool { return cmd >= 5 && cmd <= 7 || cmd >= 36 && cmd <= 38 }

// structure rebuilds an argument's memory from a record's fields.
func (im *importer) structure(s *source, name string, arg int, rec *format.Call) error {
	failed := rec.Ret < 0
	switch name {
	case "IOV":
		return im.vector(s, arg, rec)
	case "FCNTL":
		if rec.Args[arg] = uint64(s.num("argument_value")); !isLock(rec.Args[1]) {
			return nil
		}
		rec.Args[arg], name = 1, "FLOCK"
	case "UTIMBUF":
		if s.has("mod_time") {
			b := binary.LittleEndian.AppendUint64(nil, uint64(s.num("access_time")>>32))
			b = binary.LittleEndian.AppendUint64(b, uint64(s.num("mod_time")>>32))
			rec.Bytes(arg, b, 0)
		}
		return nil
	case "STAT", "STATFS", "FDPAIR":
		if failed {
			rec.Args[arg] = 1
			return nil
		}
	}
	m, ok := members[name]
	if !ok {
		return nil
	}
	b, any := make([]byte, m.bytes), false
	for _, f := range m.fields {
		if !s.has(f.field) {
			continue
		}
		any = true
		v := uint64(s.num(f.field))
		if f.time {
			sub := v & 0xffffffff * 1e9 >> 32
			if m.micro {
				sub /= 1000
			}
			binary.LittleEndian.PutUint64(b[f.off+8:], sub)
			v = uint64(int64(v) >> 32)
		}
		store(b[f.off:f.off+f.size], v)
	}
	if any {
		rec.Bytes(arg, b, 0)
	}
	return nil
}

func store(b []byte, v uint64) {
	var w [8]byte
	binary.LittleEndian.PutUint64(w[:], v)
	copy(b, w[:])
}

// load reads a number of up to 8 bytes, with its sign if it has fewer.
func load(b []byte) int64 {
	switch len(b) {
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

// vector joins the records of a vector's elements, which follow.
func (im *importer) vector(s *source, arg int, rec *format.Call) error {
	var shape []int64
	var data []byte
	for s.at+1 < s.e.Len() {
		s.at++
		if !s.element() {
			s.at--
			break
		}
		im.done.Records++
		field := "iov_data_read"
		if !s.has(field) {
			field = "iov_data_written"
		}
		shape = append(shape, s.num("bytes_requested"))
		data = append(data, s.bytes(field)...)
	}
	rec.Args[arg] = 1
	if len(shape) > 0 {
		rec.Shape(arg, shape)
	}
	if n := rec.Ret; n >= 0 && n < int64(len(data)) {
		data = data[:n] // elements are stored as long as they are, not as far as they were moved
	}
	if rec.Ret > 0 {
		rec.Bytes(arg, data, 0)
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package dataseries

import (
	"bytes"
	"compress/bzip2"
	"compress/zlib"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/pierrec/lz4/v4"
)

// Codec is a compression of a part of an extent. The numbers are the format's.
type Codec uint8

// The codecs. LZO and Bzip2 can only be read.
const (
	None Codec = iota
	LZO
	Zlib
	Bzip2
	LZF
	Snappy
	LZ4
	LZ4HC
	numCodecs
)

var codecNames = [numCodecs]string{"none", "lzo", "zlib", "bz2", "lzf", "snappy", "lz4", "lz4hc"}

func (c Codec) String() string {
	if c < numCodecs {
		return codecNames[c]
	}
	return fmt.Sprintf("codec %d", uint8(c))
}

// ParseCodec returns the codec of a name, if it can be written.
func ParseCodec(s string) (Codec, bool) {
	for c, name := range codecNames {
		if name == s && Codec(c) != LZO && Codec(c) != Bzip2 {
			return Codec(c), true
		}
	}
	return None, false
}

// maxRatio bounds what a byte can decompress to, over all codecs: a lie about the
// size costs no more memory than that. (bz2 and zlib are read as they come.)
const maxRatio = 512

var errShort = errors.New("compressed data ends early")

// decompress returns exactly size bytes, or, if exact is false, at most size.
func decompress(c Codec, src []byte, size int, exact bool) ([]byte, error) {
	if len(src) == 0 && (size == 0 || !exact) {
		return nil, nil
	}
	if c != Zlib && c != Bzip2 && uint64(size) > uint64(len(src))*maxRatio+64 {
		if exact {
			return nil, fmt.Errorf("%d bytes of %s cannot be %d", len(src), c, size)
		}
		size = len(src)*maxRatio + 64
	}
	var out []byte
	var err error
	switch c {
	case None:
		out = src
	case LZO:
		out, err = decodeLZO(src, size)
	case LZF:
		out, err = decodeLZF(src, size)
	case Zlib, Bzip2:
		out, err = inflate(c, src, size)
	case Snappy:
		var n int
		if n, err = snappy.DecodedLen(src); err == nil && n <= size {
			out, err = snappy.Decode(nil, src)
		}
	case LZ4, LZ4HC:
		dst := make([]byte, size)
		var n int
		n, err = lz4.UncompressBlock(src, dst)
		out = dst[:max(n, 0)]
	default:
		err = fmt.Errorf("%s is not known", c)
	}
	if err != nil {
		return nil, fmt.Errorf("decompress %s: %w", c, err)
	}
	if len(out) > size || exact && len(out) != size {
		return nil, fmt.Errorf("decompress %s: %d bytes, %d expected", c, len(out), size)
	}
	return out, nil
}

func inflate(c Codec, src []byte, size int) ([]byte, error) {
	var r io.Reader = bzip2.NewReader(bytes.NewReader(src))
	if c == Zlib {
		z, err := zlib.NewReader(bytes.NewReader(src))
		if err != nil {
			return nil, err
		}
		r = z
	}
	return io.ReadAll(io.LimitReader(r, int64(size)+1))
}

// compress returns src compressed by c, or as it is where that is not longer.
func compress(c Codec, src []byte) (Codec, []byte, error) {
	if len(src) == 0 {
		return None, nil, nil
	}
	var out []byte
	switch c {
	case None:
		return None, src, nil
	case Zlib:
		var b bytes.Buffer
		z, err := zlib.NewWriterLevel(&b, zlib.BestCompression)
		if err != nil {
			return 0, nil, err
		}
		if _, err := z.Write(src); err != nil {
			return 0, nil, err
		}
		if err := z.Close(); err != nil {
			return 0, nil, err
		}
		out = b.Bytes()
	case LZF:
		out = encodeLZF(src)
	case Snappy:
		out = snappy.Encode(nil, src)
	case LZ4, LZ4HC:
		dst := make([]byte, lz4.CompressBlockBound(len(src)))
		n, err := lz4.CompressBlock(src, dst, nil)
		if c == LZ4HC {
			n, err = lz4.CompressBlockHC(src, dst, lz4.Level9, nil, nil)
		}
		if err != nil {
			return 0, nil, fmt.Errorf("compress %s: %w", c, err)
		}
		out = dst[:n]
		if n == 0 { // it cannot be compressed
			return None, src, nil
		}
	default:
		return 0, nil, fmt.Errorf("%s cannot be written", c)
	}
	if len(out) >= len(src) {
		return None, src, nil
	}
	return c, out, nil
}

// SPDX-License-Identifier: Apache-2.0

package compress

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/iotape/iotape/pipe"
)

// The first byte of a block says how the rest is.
const (
	stored = 0
	packed = 1
)

// DefaultLevel of zstd.
const DefaultLevel = 3

// Zstd returns a layer that compresses with zstd. Levels are those of the zstd program,
// 1 to 22; of levels that are close to each other some are the same here.
func Zstd(level int) (pipe.Layer, error) {
	if level < 1 || level > 22 {
		return nil, fmt.Errorf("zstd:%d: levels are 1 to 22", level)
	}
	return zstdLayer(level), nil
}

type zstdLayer int

func (l zstdLayer) Name() string { return "zstd:" + strconv.Itoa(int(l)) }

func (l zstdLayer) Begin() (pipe.Encoder, []byte, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(int(l))),
		zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	if err != nil {
		return nil, nil, err
	}
	return encoder(func(dst, src []byte) []byte { return enc.EncodeAll(src, dst) }), nil, nil
}

// S2 returns a layer that compresses with s2, an extension of Snappy. The level is
// "", "better" or "best".
func S2(level string) (pipe.Layer, error) {
	switch level {
	case "", "better", "best":
		return s2Layer(level), nil
	}
	return nil, fmt.Errorf("s2:%s: levels are better and best", level)
}

type s2Layer string

func (l s2Layer) Name() string { return strings.TrimSuffix("s2:"+string(l), ":") }

func (l s2Layer) Begin() (pipe.Encoder, []byte, error) {
	encode := s2.Encode
	switch l {
	case "better":
		encode = s2.EncodeBetter
	case "best":
		encode = s2.EncodeBest
	}
	return encoder(func(dst, src []byte) []byte {
		n := s2.MaxEncodedLen(len(src))
		if cap(dst)-len(dst) < n {
			dst = append(make([]byte, 0, len(dst)+n), dst...)
		}
		return dst[:len(dst)+len(encode(dst[len(dst):len(dst)+n], src))]
	}), nil, nil
}

// encoder appends the compressed form of a block.
type encoder func(dst, src []byte) []byte

func (e encoder) Encode(dst, src []byte, _ *pipe.Place) ([]byte, error) {
	start := len(dst)
	dst = e(append(dst, packed), src)
	if len(dst)-start > len(src) {
		dst = append(append(dst[:start], stored), src...)
	}
	return dst, nil
}

// Open returns a decoder for blocks that have up to maxBytes when they are undone, by
// the name of their layer. It reports whether the name is one of this package.
func Open(name string, maxBytes int) (d pipe.Decoder, ok bool, err error) {
	kind, _, _ := strings.Cut(name, ":")
	switch kind {
	case "zstd":
		z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderMaxMemory(uint64(max(maxBytes, 1<<20))), zstd.WithDecodeAllCapLimit(true))
		if err != nil {
			return nil, true, err
		}
		return &decoder{maxBytes, func(dst, src []byte) ([]byte, error) { return z.DecodeAll(src, dst) }}, true, nil
	case "s2":
		return &decoder{maxBytes, func(dst, src []byte) ([]byte, error) { return unpackS2(dst, src, maxBytes) }},
			true, nil
	}
	return nil, false, nil
}

func unpackS2(dst, src []byte, maxBytes int) ([]byte, error) {
	n, err := s2.DecodedLen(src)
	if err != nil {
		return nil, err
	}
	if n > maxBytes {
		return nil, fmt.Errorf("%d bytes in it, at most %d can be", n, maxBytes)
	}
	out, err := s2.Decode(dst[len(dst):len(dst)+n], src)
	return dst[:len(dst)+len(out)], err
}

type decoder struct {
	maxBytes int
	unpack   func(dst, src []byte) ([]byte, error)
}

func (d *decoder) Decode(dst, src []byte, _ *pipe.Place) ([]byte, error) {
	if len(src) == 0 {
		return dst, errors.New("an empty block")
	}
	switch src[0] {
	case stored:
		return append(dst, src[1:]...), nil
	case packed:
		if cap(dst)-len(dst) < d.maxBytes {
			dst = append(make([]byte, 0, len(dst)+d.maxBytes), dst...)
		}
		return d.unpack(dst, src[1:])
	}
	return dst, fmt.Errorf("packed in a way %d that is not known", src[0])
}

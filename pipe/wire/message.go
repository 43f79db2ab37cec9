// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/iotape/iotape/pipe"
)

// A hello is sent once, when a client has connected; the stream's header follows, which
// has its own length. An answer is sent by the server, any number of times. Blocks have
// the same form as in a stream. All numbers are little-endian.
//
//	hello                          answer
//	 0 8 bytes "iotape W"           0 u32 magic "iotw"
//	 8 u32 version                  4 u32 code
//	12 u32 0                        8 u64 number of blocks that the server has
const (
	helloMagic  = "iotape W"
	version     = 1
	helloBytes  = 16
	answerMagic = 0x77746f69
	answerBytes = 16
)

// code is the result that a server sends with the number of blocks.
type code uint32

const (
	codeHave    code = 0 // continue
	codeLater   code = 1 // no room at the moment: connect again later
	codeRefused code = 2 // the stream is refused
)

var codeText = map[code]string{codeLater: "the listener has no room at the moment",
	codeRefused: "the listener refuses the stream"}

func appendHello(b, header []byte) []byte {
	b = append(b, helloMagic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint32(b, 0)
	return append(b, header...)
}

var errNoPeer = errors.New("the peer does not speak iotape's protocol")

// readHello reads a hello and the header in it.
func readHello(r io.Reader) (h *pipe.Header, encoded []byte, err error) {
	var b [helloBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return nil, nil, err
	}
	if string(b[:8]) != helloMagic || binary.LittleEndian.Uint32(b[12:]) != 0 {
		return nil, nil, errNoPeer
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		return nil, nil, fmt.Errorf("the peer speaks version %d of the protocol, this program %d", v, version)
	}
	var copied bytes.Buffer
	h, err = pipe.ReadHeader(io.TeeReader(r, &copied))
	return h, copied.Bytes(), err
}

func appendAnswer(b []byte, c code, have uint64) []byte {
	b = binary.LittleEndian.AppendUint32(b, answerMagic)
	b = binary.LittleEndian.AppendUint32(b, uint32(c))
	return binary.LittleEndian.AppendUint64(b, have)
}

func readAnswer(r io.Reader) (c code, have uint64, err error) {
	var b [answerBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, 0, err
	}
	c, have = code(binary.LittleEndian.Uint32(b[4:])), binary.LittleEndian.Uint64(b[8:])
	if binary.LittleEndian.Uint32(b[:]) != answerMagic || c > codeRefused {
		return 0, 0, errNoPeer
	}
	return c, have, nil
}

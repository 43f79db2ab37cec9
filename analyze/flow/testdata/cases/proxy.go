// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
)

// proxy takes connections until its standard input ends, and passes on what comes on them, both ways. The
// first time that a part has a word, the byte behind it is changed.
func proxy(addr, to, word string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Println("ready")
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		l.Close()
	}()
	var done atomic.Bool
	pass := func(to io.Writer, from io.Reader) {
		buf := make([]byte, 1<<16)
		for {
			n, err := from.Read(buf)
			if at := bytes.Index(buf[:n], []byte(word)) + len(word); word != "" && at >= len(word) && at < n &&
				!done.Swap(true) {
				buf[at] ^= 1
			}
			if _, bad := to.Write(buf[:n]); bad != nil || err != nil {
				return
			}
		}
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return nil
		}
		go func() {
			defer c.Close()
			out, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer out.Close()
			go func() {
				pass(out, c)
				out.Close()
			}()
			pass(c, out)
		}()
	}
}

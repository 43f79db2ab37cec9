// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/pipe/wire"
)

func TestListen(t *testing.T) {
	for _, tt := range []struct{ address, called string }{
		{"127.0.0.1:0", "tcp://127.0.0.1:"},
		{":0", "tcp://127.0.0.1:"},
		{"tcp://localhost:0", "tcp://127.0.0.1:"},
		{"unix:" + filepath.Join(t.TempDir(), "s"), "unix:/"},
	} {
		ln, err := wire.Listen(t.Context(), tt.address, &wire.ListenOptions{})
		if err != nil {
			t.Errorf("Listen(%s): %v", tt.address, err)
			continue
		}
		if got := wire.AddressOf(ln, tt.address); !strings.HasPrefix(got, tt.called) {
			t.Errorf("the listener of %s is called %s, want %s…", tt.address, got, tt.called)
		}
		ln.Close()
	}
}

func TestListenRefuses(t *testing.T) {
	var exposed *wire.ExposedError
	ln, err := wire.Listen(t.Context(), "0.0.0.0:0", &wire.ListenOptions{Risk: "this is a test"})
	if !errors.As(err, &exposed) || err.Error() != "0.0.0.0:0 can be reached by others, and this is a test" {
		t.Errorf("Listen(0.0.0.0:0) = %v, %v; want an ExposedError", ln, err)
	}
	ln, err = wire.Listen(t.Context(), "0.0.0.0:0", &wire.ListenOptions{Open: true})
	if err != nil {
		t.Errorf("Listen(0.0.0.0:0) with Open: %v", err)
	} else {
		ln.Close()
	}
	for _, address := range []string{"udp://127.0.0.1:0", "localhost", "tcp://1:2:3"} {
		var wrong *wire.AddressError
		if ln, err := wire.Listen(t.Context(), address, &wire.ListenOptions{}); !errors.As(err, &wrong) {
			t.Errorf("Listen(%s) = %v, %v; want an AddressError", address, ln, err)
		}
	}
	var wrong *wire.AddressError
	if ln, err := wire.Listen(t.Context(), "127.0.0.1:0",
		&wire.ListenOptions{TLS: wire.Files{CA: "x"}}); !errors.As(err, &wrong) {
		t.Errorf("Listen without TLS but with a CA = %v, %v; want an AddressError", ln, err)
	}
	path := "unix:" + filepath.Join(t.TempDir(), "s")
	ln, err = wire.Listen(t.Context(), path, &wire.ListenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	if second, err := wire.Listen(t.Context(), path, &wire.ListenOptions{}); err == nil {
		second.Close()
		t.Error("two listen at one socket")
	}
}

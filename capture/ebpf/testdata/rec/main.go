// Command rec records a command, for measuring by hand: rec full|none OUT COMMAND…
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"

	"iotape/capture"
	"iotape/capture/ebpf"
	"iotape/internal/ptracer"
	"iotape/trace"
)

func main() {
	ptracer.Stub()
	var w io.Writer = io.Discard
	if os.Args[2] != "-" {
		f, err := os.Create(os.Args[2])
		if err != nil {
			panic(err)
		}
		w = f
	}
	ring, _ := strconv.Atoi(os.Getenv("RING"))
	o := &capture.Options{Command: os.Args[3:], Content: capture.Content(os.Args[1]), RingBytes: ring}
	sw, err := trace.NewStreamWriter(w, 1, &trace.Head{Shards: ebpf.Shards(o), Arch: "amd64"})
	if err != nil {
		panic(err)
	}
	res, err := ebpf.Source{}.Run(context.Background(), o, sw)
	fmt.Fprintf(os.Stderr, "%+v %v\n", res, err)
	_ = sw.Close(&trace.End{})
}

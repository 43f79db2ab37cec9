// Iotape records what programs do to their storage, shows it, and plays it back.
// See README.md, or iotape --help.
package main

import (
	"os"

	"github.com/iotape/iotape/internal/ptracer"
	"github.com/iotape/iotape/record/capture/ebpf"
	"github.com/iotape/iotape/replay/execute"
)

func main() {
	ptracer.Stub() // does not return in a process that becomes a recorded command
	execute.Stub() // likewise in one that replays
	ebpf.Stub()    // likewise in one that watches over a recording
	os.Exit(run(os.Args[1:], &console{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}

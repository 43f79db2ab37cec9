// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// retryEvery is the time between two attempts to write a stream that could not be written.
const retryEvery = 2 * time.Second

// probe returns why the collector cannot write anything at all, nil if it can.
func (c *Collector) probe() error {
	name := filepath.Join(c.o.Data, "probe")
	err := os.WriteFile(name, make([]byte, 4096), 0o600)
	if gone := os.Remove(name); err == nil {
		err = gone
	}
	return err
}

// wait leaves the batches of a stream that cannot be written in the broker. Other streams
// continue. The broker keeps everything that came later, until it is full.
func (c *Collector) wait(h *host, o *open, why error) {
	for _, t := range o.taken {
		o.held[t.number] = t.seq
	}
	c.events -= o.events - o.committed.events
	c.bytes -= uint64(o.length - o.committed.length)
	o.progress, o.taken, o.chunk, o.end, o.endSeq = o.committed, nil, nil, nil, 0
	if o.next == 0 { // it is not there at all
		o.next = 1
	}
	if o.why == nil {
		c.o.Note(fmt.Sprintf("stream %s of %s cannot be written, and what comes of it waits in the broker: %v",
			o.about.Stream, h.Host, why))
	}
	o.why, o.tried = why, c.o.Clock()
}

// streamRecovered reports that a stream can be written again.
func (c *Collector) streamRecovered(h *host, o *open) {
	o.why = nil
	c.o.Note(fmt.Sprintf("stream %s of %s is written again", o.about.Stream, h.Host))
}

// retry writes streams that could not be written, and held batches whose turn has come.
func (c *Collector) retry() {
	for _, h := range c.hosts {
		for _, o := range h.open {
			if o.end != nil || len(o.held) == 0 {
				continue
			}
			if o.why != nil {
				now := c.o.Clock()
				if now.Sub(o.tried).Abs() < retryEvery {
					continue
				}
				o.tried = now
				if o.unknown && !c.recovered(h, o) {
					continue
				}
			}
			c.resume(h, o)
		}
	}
}

// recovered finds how far a stream was written before its directory became unwritable.
func (c *Collector) recovered(h *host, o *open) bool {
	p, err := recoverStream(o.dir)
	if err != nil {
		o.why = err
		return false
	}
	o.progress, o.committed, o.unknown = p, p, false
	for n := range o.held {
		if n < o.next {
			delete(o.held, n)
			h.Duplicates++
		}
	}
	return true
}

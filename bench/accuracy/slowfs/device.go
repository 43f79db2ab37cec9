package main

import (
	"sync"
	"time"
)

// clock is the time of a device, from any beginning.
type clock interface {
	now() time.Duration
	// until waits until it is t.
	until(t time.Duration)
}

// device is what the requests are for. It does no work and holds no data: it says when a
// request would be done.
type device struct {
	seek, transfer time.Duration
	clock          clock

	mu   sync.Mutex
	arms []arm
}

// arm is where an arm is, and when it has done all that it was given.
type arm struct {
	on   *content
	off  int64
	free time.Duration
}

// content is a file's, however many names and handles it has.
type content struct {
	dirty   bool          // written since a flush began
	flushed time.Duration // when the last flush that was begun is done
}

const unit = 64 << 10 // bytes of a transfer

// transferred gives a read or a write of n bytes to the arm that is free first, and returns
// when it is done.
func (d *device) transferred(now time.Duration, c *content, off, n int64, write bool) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.dirty = c.dirty || write
	a := d.next()
	took := time.Duration(n) * d.transfer / unit
	if len(d.arms) > 1 || a.on != c || a.off != off {
		took += d.seek
	}
	a.on, a.off, a.free = c, off+n, max(a.free, now)+took
	return a.free
}

// flushed gives a flush to the arm that is free first, and returns when it is done. Writes
// are done when they return, so what is left is to write down that the file has changed:
// one request elsewhere, with next to no bytes. A file that has not changed costs
// nothing, but a flush that is under way is waited for: it is what the caller relies on.
func (d *device) flushed(now time.Duration, c *content) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !c.dirty {
		return max(c.flushed, now)
	}
	a := d.next()
	a.on, a.free = nil, max(a.free, now)+d.seek
	c.dirty, c.flushed = false, a.free
	return a.free
}

// next returns the arm that is free first.
func (d *device) next() *arm {
	a := &d.arms[0]
	for i := range d.arms {
		if d.arms[i].free < a.free {
			a = &d.arms[i]
		}
	}
	return a
}

// written marks a file as changed by something that takes no time: its size.
func (d *device) written(c *content) {
	d.mu.Lock()
	c.dirty = true
	d.mu.Unlock()
}

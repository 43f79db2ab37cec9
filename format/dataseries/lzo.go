// SPDX-License-Identifier: Apache-2.0

package dataseries

// decodeLZO decodes an LZO1X stream (Documentation/staging/lzo.rst of Linux).
func decodeLZO(src []byte, size int) ([]byte, error) {
	d := lzo{src: src, out: make([]byte, 0, size), size: size}
	if len(src) == 0 {
		return nil, errShort
	}
	// literals is how many were copied after the last match: 4 stands for a run.
	literals := 0
	if src[0] > 17 {
		n := int(src[0]) - 17
		d.src = src[1:]
		d.copy(n)
		literals = min(n, 4)
	}
	for !d.bad {
		c := d.byte()
		var n, dist, next int
		switch {
		case c >= 64:
			n = c>>5 + 1
			dist = d.byte()<<3 + c>>2&7 + 1
			next = c & 3
		case c >= 32:
			n = d.length(c&31, 31) + 2
			w := d.word()
			dist, next = w>>2+1, w&3
		case c >= 16:
			n = d.length(c&7, 7) + 2
			w := d.word()
			dist, next = (c&8)<<11+w>>2, w&3
			if dist == 0 { // the end
				if d.bad || len(d.src) > 0 {
					return nil, errShort
				}
				return d.out, nil
			}
			dist += 0x4000
		case literals == 0:
			d.copy(d.length(c, 15) + 3)
			literals = 4
			continue
		case literals == 4:
			n, dist, next = 3, d.byte()<<2+c>>2+0x801, c&3
		default:
			n, dist, next = 2, d.byte()<<2+c>>2+1, c&3
		}
		if d.bad {
			break
		}
		out, ok := repeat(d.out, dist, n, size)
		if !ok {
			break
		}
		d.out = out
		d.copy(next)
		literals = next
	}
	return nil, errShort
}

type lzo struct {
	src, out []byte
	size     int
	bad      bool
}

func (d *lzo) byte() int {
	if len(d.src) == 0 {
		d.bad = true
		return 0
	}
	c := d.src[0]
	d.src = d.src[1:]
	return int(c)
}

func (d *lzo) word() int { lo := d.byte(); return lo | d.byte()<<8 }

// length reads a length that did not fit into a code's bits, which are all ones then.
func (d *lzo) length(bits, base int) int {
	if bits != 0 {
		return bits
	}
	n := base
	for {
		c := d.byte()
		if c != 0 || d.bad || n > d.size {
			return n + c
		}
		n += 255
	}
}

func (d *lzo) copy(n int) {
	if n > len(d.src) || len(d.out)+n > d.size {
		d.bad = true
		return
	}
	d.out, d.src = append(d.out, d.src[:n]...), d.src[n:]
}

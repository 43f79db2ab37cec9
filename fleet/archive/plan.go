// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/iotape/iotape/fleet/staging"
	"github.com/iotape/iotape/pipe/wholefile"
	"github.com/iotape/iotape/trace"
)

// job is a tape that is being made and stored.
type job struct {
	dir  string // of the files that show its progress
	Plan Plan
}

// Plan lists what a tape is made of.
type Plan struct {
	Key      string         `json:"key"`     // in the store: day=2026-11-22/host=db7/NAME.tape
	Streams  []string       `json:"streams"` // names of the host's streams, in their order
	Assembly trace.Assembly `json:"assembly"`
	Events   uint64         `json:"events"` // in the streams, as their agents counted them
	// Incomplete is what the tape lacks, "" if nothing.
	Incomplete string `json:"incomplete,omitempty"`
	// Headless says that the first stream continues one that is missing, "" if not.
	Headless string `json:"headless,omitempty"`
}

// maxJoined limits the streams of one tape.
const maxJoined = 4096

// group is a sequence of streams each of which continues the one before.
type group struct {
	streams  []staging.Stream
	ready    bool // no stream can follow
	headless bool // the first continues a stream that is missing
}

// groups finds the streams of each tape. Streams in taken already belong to jobs. A stream
// that ended less than settle before now may still be continued by another one.
func groups(streams []staging.Stream, taken map[string]bool, now time.Time, settle time.Duration) (list []group) {
	here := map[string]bool{}
	for i := range streams {
		here[streams[i].About.Host+"/"+streams[i].About.Stream] = true
	}
	var last *group
	end := func(ready bool) {
		if last != nil {
			last.ready = ready
			list = append(list, *last)
			last = nil
		}
	}
	for i := range streams {
		s := streams[i]
		if last != nil && last.streams[0].About.Host != s.About.Host {
			end(settled(last, now, settle))
		}
		if taken[s.Dir] {
			end(true)
			continue
		}
		if last != nil && (len(last.streams) == maxJoined || !continues(&last.streams[len(last.streams)-1], &s)) {
			end(true)
		}
		if s.End == nil {
			if last != nil { // this one continues it
				end(false)
			}
			continue
		}
		if last == nil {
			last = &group{}
			if s.About.Continues {
				if here[s.About.Host+"/"+s.About.Previous] { // it belongs to the tape of that one, which is not ready
					list = append(list, group{streams: []staging.Stream{s}})
					last = nil
					continue
				}
				last.headless = true
			}
		}
		last.streams = append(last.streams, s)
	}
	if last != nil {
		end(settled(last, now, settle))
	}
	return list
}

// settled reports whether no stream can come that continues a host's last one.
func settled(g *group, now time.Time, settle time.Duration) bool {
	e := g.streams[len(g.streams)-1].End
	if e.Continued { // the next one cannot be read without this one
		return now.Sub(time.Unix(0, e.EndNS)) >= max(settle, continuedWait)
	}
	switch e.Reason {
	case staging.ReasonAge, staging.ReasonSize:
		return now.Sub(time.Unix(0, e.EndNS)) >= settle
	}
	return true
}

// continuedWait is how long a stream waits for the one that its agent has announced.
const continuedWait = 48 * time.Hour

// continues reports whether a stream belongs to the same tape as the one before. Either it
// says that it cannot be read without that one: the tape then declares what is missing
// between them. Or its frames follow those of that one, with the same stream number and
// without a gap: then nothing is missing.
func continues(a, b *staging.Stream) bool {
	if b.About.Continues {
		return b.About.Previous == a.About.Stream
	}
	if a.About.BootID != b.About.BootID || a.About.AgentStartNS != b.About.AgentStartNS ||
		a.About.Level != b.About.Level || a.About.ConfigHash != b.About.ConfigHash ||
		a.End == nil || !a.End.Complete {
		return false
	}
	switch a.End.Reason {
	case staging.ReasonAge, staging.ReasonSize:
	default:
		return false
	}
	first, err := frames(b.File(), true)
	if err != nil || first.Kind == trace.FrameHead {
		return false
	}
	last, err := frames(a.File(), false)
	return err == nil && last.Kind != trace.FrameEnd && first.Stream == last.Stream && first.Seq == last.Seq+1
}

var errNoFrame = errors.New("no frame")

// frames returns the first frame of a stream, or the last one. It does not read payloads,
// as sealing does that.
func frames(name string, first bool) (f trace.Frame, err error) {
	f, _, err = whole(name, first)
	return f, err
}

// whole returns the first or the last frame of a stream, and the end of its complete frames,
// even if the stream is cut off there.
func whole(name string, first bool) (f trace.Frame, off int64, err error) {
	in, err := wholefile.OpenOwn(name, staging.StreamParts, os.O_RDONLY, 0)
	if err != nil {
		return f, off, err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return f, off, err
	}
	r, found := bufio.NewReader(in), false
	for off < st.Size() {
		var h [trace.FrameHeaderBytes]byte
		if _, err := in.Seek(off, io.SeekStart); err != nil {
			return f, off, err
		}
		r.Reset(in)
		if _, err := io.ReadFull(r, h[:]); err != nil {
			return f, off, fmt.Errorf("%s: %w", name, trace.ErrTruncated)
		}
		next, err := trace.ParseFrame(h[:])
		if err != nil {
			return f, off, fmt.Errorf("%s: %w", name, err)
		}
		f, found = next, true
		if first {
			return f, off, nil
		}
		end := off + trace.FrameHeaderBytes + int64(next.Length)
		if end > st.Size() {
			return f, off, fmt.Errorf("%s: %w", name, trace.ErrTruncated)
		}
		off = end
	}
	if !found {
		return f, off, fmt.Errorf("%s: %w", name, errNoFrame)
	}
	return f, off, nil
}

// plan returns the plan for the tape of a group.
func (g *group) plan() Plan {
	first, last := &g.streams[0], &g.streams[len(g.streams)-1]
	p := Plan{Assembly: trace.Assembly{
		Host: first.About.Host, Level: first.About.Level, Config: first.About.ConfigHash,
		Begins: trace.Boundary{Reason: string(first.About.Reason), Detail: first.About.Detail,
			WallNS: first.About.StartNS, GapNS: first.About.GapNS},
		Ends: trace.Boundary{Reason: string(last.End.Reason), Detail: last.End.Detail, WallNS: last.End.EndNS},
	}}
	lost := map[string]uint64{}
	var reasons []string
	for i := range g.streams {
		s := &g.streams[i]
		p.Streams = append(p.Streams, s.About.Stream)
		p.Events += s.End.Events
		for _, l := range s.End.Losses {
			if _, ok := lost[l.Reason]; !ok && len(reasons) < maxLosses {
				reasons = append(reasons, l.Reason)
			}
			lost[l.Reason] += l.Events
		}
		if !s.End.Complete && p.Incomplete == "" {
			p.Incomplete = fmt.Sprintf("the stream ended before its agent ended it: %s", s.End.Reason)
		}
	}
	total := uint64(0)
	for _, r := range reasons {
		p.Assembly.Losses = append(p.Assembly.Losses, trace.Loss{Reason: r, Records: lost[r]})
		total += lost[r]
	}
	if total > 0 {
		p.Incomplete = fmt.Sprintf("%d events were declared lost: %s", total, strings.Join(reasons, ", "))
	}
	p.Assembly.Streams = p.Streams
	if g.headless {
		p.Headless = fmt.Sprintf("it continues stream %s, which is missing", first.About.Previous)
	}
	p.Key = key(&first.About)
	return p
}

// maxLosses limits the reasons that are listed one by one.
const maxLosses = 64

// key returns the key of a tape in a store: by day and host. It is made of checked names,
// and no two streams have the same.
func key(a *staging.About) string {
	start := time.Unix(0, max(a.StartNS, 0)).UTC()
	return fmt.Sprintf("day=%s/host=%s/%s-%s%s", start.Format("2006-01-02"), a.Host, start.Format("20060102T150405Z"),
		a.Stream, tapeSuffix)
}

const tapeSuffix = ".tape"

// The files of a job.
const (
	planName    = "plan.json"
	tapeName    = "tape"
	storedName  = "stored"
	toldName    = "told"
	workName    = "work" // unfinished files of the sealing
	removedName = "removed"
)

// maxPlan limits the size of a plan, in bytes.
const maxPlan = 16 << 20

// openJob reads a job's plan. The job is nil if it has none: it has not begun, or has ended.
func openJob(dir string) (*job, error) {
	b, err := wholefile.ReadOwn(filepath.Join(dir, planName), jobParts+1, maxPlan)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	j := &job{dir: dir}
	if err := json.Unmarshal(b, &j.Plan); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, planName), err)
	}
	return j, j.Plan.check()
}

// check refuses a plan whose names could be paths.
func (p *Plan) check() error {
	if err := staging.CheckHost(p.Assembly.Host); err != nil {
		return err
	}
	if len(p.Streams) == 0 {
		return errors.New("a plan without streams")
	}
	for _, s := range p.Streams {
		if _, err := staging.ParseStream(s); err != nil {
			return err
		}
	}
	return checkKey(p.Key)
}

// checkKey refuses keys of tapes that this package does not make.
func checkKey(key string) error {
	parts := strings.Split(key, "/")
	ok := len(parts) == 3 && strings.HasPrefix(parts[0], "day=") && strings.HasPrefix(parts[1], "host=") &&
		strings.HasSuffix(key, tapeSuffix)
	if !ok || len(key) > 512 ||
		slices.ContainsFunc(parts, func(s string) bool { return strings.Contains(s, "..") || !validPart(s) }) {
		return fmt.Errorf("%q is no place of a tape", key)
	}
	return nil
}

func validPart(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			strings.ContainsRune("-_.=", r))
	}) < 0
}

// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/iotape/iotape/analyze/report"
)

// ReportVersion is the version of the JSON that a Report is written as.
const ReportVersion = 1

// A Report is what was measured.
type Report struct {
	Version int       `json:"version"` // ReportVersion
	Machine Machine   `json:"machine"`
	Time    time.Time `json:"time"`   // when it began
	Iotape  string    `json:"iotape"` // what was measured, as it calls itself
	Scale   float64   `json:"scale"`  // of the sizes
	LeftOut []LeftOut `json:"left_out,omitempty"`
	Series  []*Series `json:"series"`
}

// A Machine is where it was measured.
type Machine struct {
	Kernel      string  `json:"kernel"`
	CPU         string  `json:"cpu"`
	CPUs        int     `json:"cpus"`
	MemoryBytes uint64  `json:"memory_bytes"`
	FileSystem  string  `json:"file_system"` // of the disk
	Load        float64 `json:"load"`        // mean number of running processes in the minute before
}

// LeftOut is a workload or a way that cannot run on the machine.
type LeftOut struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// A Series is a workload of one size, run in one way.
type Series struct {
	Workload string   `json:"workload"`
	Title    string   `json:"title"`
	Class    Class    `json:"class"`
	Size     int      `json:"size"`
	Slow     bool     `json:"slow,omitempty"` // of the group with the slow ways
	Way      string   `json:"way"`
	Samples  []Sample `json:"samples"`

	// What follows is derived from the samples that did not fail.
	Failed   string  `json:"failed,omitempty"` // of the first sample that did
	Elapsed  Summary `json:"elapsed_seconds"`
	Ratio    Summary `json:"ratio"`            // of Elapsed to the untraced way's, round by round
	CPU      Summary `json:"cpu_ratio"`        // of the CPU time of command and recorder together, likewise
	User     Summary `json:"user_seconds"`     // CPU time of the command
	Sys      Summary `json:"sys_seconds"`      //
	Recorder Summary `json:"recorder_seconds"` // CPU time of the recorder meanwhile
	Start    Summary `json:"start_seconds"`    // from the recorder's start to the command's
	After    Summary `json:"after_seconds"`    // from the command's end to the recorder's
	Events   Summary `json:"events"`           //
	Stream   Summary `json:"stream_bytes"`     //
	Tape     Summary `json:"tape_bytes"`       //
	Lost     uint64  `json:"lost"`             // in all samples together
}

func newReport(ctx context.Context, o *Options, p *place) *Report {
	r := &Report{Version: ReportVersion, Time: time.Now().UTC().Truncate(time.Second), Scale: o.Scale}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		r.Machine.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	var si unix.Sysinfo_t
	if unix.Sysinfo(&si) == nil {
		r.Machine.MemoryBytes = si.Totalram * uint64(si.Unit)
		r.Machine.Load = float64(si.Loads[0]) / (1 << 16)
	}
	r.Machine.CPUs = runtime.NumCPU()
	r.Machine.CPU = cpuModel()
	r.Machine.FileSystem = output(ctx, "findmnt", "-n", "-o", "FSTYPE", "-T", p.dir)
	r.Iotape, _, _ = strings.Cut(output(ctx, p.tools.iotape, "version"), ";")
	return r
}

// output returns the first line that a program prints; "" if it cannot.
func output(ctx context.Context, name string, args ...string) string {
	b, err := exec.CommandContext(ctx, name, args...).Output()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

func cpuModel() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// leaveOut notes that name is not measured, if there is a reason.
func (r *Report) leaveOut(name, why string) bool {
	if why != "" {
		r.LeftOut = append(r.LeftOut, LeftOut{name, why})
	}
	return why != ""
}

func (r *Report) add(g *group, way *Way) *Series {
	s := &Series{Workload: g.workload.Name, Title: g.workload.title(g.size), Class: g.workload.Class, Size: g.size,
		Slow: g.slow, Way: way.Name}
	r.Series = append(r.Series, s)
	return s
}

// find returns the series of a workload and a way, nil if there is none.
func (r *Report) find(workload, way string, slow bool) *Series {
	i := slices.IndexFunc(r.Series,
		func(s *Series) bool { return s.Workload == workload && s.Way == way && s.Slow == slow })
	if i < 0 {
		return nil
	}
	return r.Series[i]
}

// summarize derives what is derived.
func (r *Report) summarize() {
	for _, s := range r.Series {
		base := r.find(s.Workload, untraced.Name, s.Slow)
		s.derive(base)
	}
}

func (s *Series) derive(base *Series) {
	var elapsed, ratio, cpu, user, sys, rec, start, after, events, stream, tape []float64
	s.Failed, s.Lost = "", 0
	for i := range s.Samples {
		m := &s.Samples[i]
		s.Lost += m.Lost
		if m.Failed != "" {
			s.Failed = or(s.Failed, m.Failed)
			continue
		}
		elapsed = append(elapsed, seconds(m.ElapsedNS))
		user = append(user, seconds(m.UserNS))
		sys = append(sys, seconds(m.SysNS))
		rec = append(rec, seconds(m.RecorderNS))
		start = append(start, seconds(m.StartNS))
		after = append(after, seconds(m.AfterNS))
		events = append(events, float64(m.Events))
		stream = append(stream, float64(m.StreamBytes))
		tape = append(tape, float64(m.TapeBytes))
		if b := base.round(m.Round); b != nil {
			ratio = append(ratio, float64(m.ElapsedNS)/float64(b.ElapsedNS))
			if b.cpu() > 0 {
				cpu = append(cpu, float64(m.cpu())/float64(b.cpu()))
			}
		}
	}
	for _, d := range []struct {
		to   *Summary
		from []float64
	}{
		{&s.Elapsed, elapsed}, {&s.Ratio, ratio}, {&s.CPU, cpu}, {&s.User, user}, {&s.Sys, sys}, {&s.Recorder, rec},
		{&s.Start, start}, {&s.After, after}, {&s.Events, events}, {&s.Stream, stream}, {&s.Tape, tape},
	} {
		*d.to = summarize(d.from)
	}
}

// round returns the run of a round; nil if there is none that counts.
func (s *Series) round(round int) *Sample {
	if s == nil {
		return nil
	}
	for i := range s.Samples {
		if m := &s.Samples[i]; m.Round == round && m.Failed == "" && m.ElapsedNS > 0 {
			return m
		}
	}
	return nil
}

func (m *Sample) cpu() int64 { return m.UserNS + m.SysNS + m.RecorderNS }

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// Failures returns a line for each series with a run that failed.
func (r *Report) Failures() []string {
	var lines []string
	for _, s := range r.Series {
		if s.Failed != "" {
			lines = append(lines, fmt.Sprintf("%s, %s: %s", s.Title, s.Way, s.Failed))
		}
	}
	return lines
}

// JSON writes the report with all its samples.
func (r *Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// ReadReport reads what JSON wrote.
func ReadReport(in io.Reader) (*Report, error) {
	r := new(Report)
	if err := json.NewDecoder(in).Decode(r); err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	if r.Version != ReportVersion {
		return nil, fmt.Errorf("read report: version %d, this program knows %d", r.Version, ReportVersion)
	}
	if slices.Contains(r.Series, nil) {
		return nil, fmt.Errorf("read report: a series is null")
	}
	r.summarize()
	return r, nil
}

// Update puts what a later report measured in the place of what this one has of
// the same workloads and sizes, and adds the rest.
func (r *Report) Update(later *Report) {
	r.Series = slices.DeleteFunc(r.Series, func(s *Series) bool {
		return slices.ContainsFunc(later.Series,
			func(l *Series) bool { return l.Workload == s.Workload && l.Slow == s.Slow })
	})
	r.Series = append(r.Series, later.Series...)
	for _, l := range later.LeftOut {
		if !slices.Contains(r.LeftOut, l) {
			r.LeftOut = append(r.LeftOut, l)
		}
	}
	r.Machine, r.Time, r.Iotape, r.Scale = later.Machine, later.Time, later.Iotape, later.Scale
}

// line is a run in a few words.
func (s *Sample) line() string {
	if s.Failed != "" {
		return "FAILED: " + s.Failed
	}
	line := report.Duration(s.ElapsedNS)
	if s.Events > 0 {
		line += fmt.Sprintf(", %s events, stream %s, sealed in %s to %s", report.Count(s.Events),
			report.Bytes(uint64(s.StreamBytes)), report.Duration(s.AfterNS), report.Bytes(uint64(s.TapeBytes)))
	}
	return line
}

// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"
)

const module = "github.com/iotape/iotape"

// floors are the folders of the module, from the ground up. A package imports packages of
// its own folder and of folders on lower floors, so that no import runs upwards.
var floors = [][]string{
	{"event", "pipe", "tree"},
	{"trace"},
	{"internal"},
	{"causal", "model", "predicate"},
	{"replay", "seal"},
	{"analyze", "transform"},
	{"record"},
	{"fleet", "format", "store"},
	{"bench", "web"},
	{"cmd", "e2e"},
}

// floor returns the floor of a package, -1 if its folder is on none.
func (p *pkg) floor() int {
	return slices.IndexFunc(floors, func(folders []string) bool { return slices.Contains(folders, p.folder()) })
}

// folder returns the first element of the package's name.
func (p *pkg) folder() string {
	folder, _, _ := strings.Cut(p.name(), "/")
	return folder
}

// checkFloors returns the imports between folders that do not run downwards.
func checkFloors(pkgs map[string]*pkg) []string {
	var broken []string
	for _, p := range pkgs {
		if !p.ours() {
			continue
		}
		if p.floor() < 0 {
			broken = append(broken, fmt.Sprintf("%s: its folder is on no floor (internal/lint/rules.go)", p.name()))
			continue
		}
		for _, path := range p.imports {
			d := pkgs[path]
			if d != nil && d.ours() && d.folder() != p.folder() && d.floor() >= p.floor() {
				broken = append(broken, fmt.Sprintf("%s imports %s: %s is not on a floor below %s", p.name(),
					d.name(), d.folder(), p.folder()))
			}
		}
	}
	slices.Sort(broken)
	return broken
}

// A rule says what the packages of some names may import. Names are written
// without the module's own ("trace", "record/capture"), with "std:" for the
// standard library's and "other:" for everybody else's; "x/..." is x and all below.
//
// Of what a rule forbids, our own packages must not be reached at all, through
// whatever is between; others must not be imported by the package itself.
type rule struct {
	of    []string
	only  []string // of our own packages, these alone; nil: any
	never []string
	why   string
}

var rules = []rule{
	{
		of:    []string{"event"},
		only:  []string{},
		never: []string{"other:..."},
		why:   "the vocabulary depends on the standard library alone",
	},
	{
		of:    []string{"event/socket"},
		only:  []string{"event"},
		never: []string{"other:...", "std:os/..."},
		why:   "what a socket's ends are called, wherever they come from",
	},
	{
		of:    []string{"event/layout"},
		only:  []string{"event"},
		never: []string{"other:...", "std:os/..."},
		why:   "bytes to meaning, with what the catalogue says",
	},
	{
		of:    []string{"pipe/..."},
		never: []string{"event", "trace"},
		why:   "byte streams: it does not know what it carries",
	},
	{
		of:   []string{"trace"},
		only: []string{"event", "pipe", "pipe/wholefile", "internal/..."},
		why:  "the files: below everything that understands them",
	},
	{
		of:   []string{"tree"},
		only: []string{"internal/..."},
		why:  "trees of files, with or without a trace",
	},
	{
		of:   []string{"predicate"},
		only: []string{"event", "event/facts", "event/socket", "predicate/...", "internal/spell"},
		why:  "a language over events",
	},
	{
		of:   []string{"predicate/source"},
		only: []string{"predicate"},
		why:  "where filters are written, whatever they are for",
	},
	{
		of:    []string{"analyze/checked", "analyze/explain", "analyze/optable"},
		never: []string{"std:os/...", "std:net/...", "replay/...", "seal"},
		why:   "they write what they are given",
	},
	{
		of:    []string{"model/posix", "causal", "causal/happens", "model/similar/..."},
		only:  []string{"event", "event/facts", "event/socket", "trace", "causal", "model/similar/..."},
		never: []string{"std:os/...", "std:net/...", "other:golang.org/x/sys/..."},
		why:   "pure: the same answer for the same trace on every machine (syscall is for Errno)",
	},
	{
		of:    []string{"causal/throttle"},
		only:  []string{"event", "causal", "internal/ptracer"},
		never: []string{"std:net/..."},
		why:   "it runs programs and reads events, whoever records and replays them",
	},
	{
		of:   []string{"causal/throttle/hosts"},
		only: []string{"causal/throttle", "internal/ptracer", "internal/team"},
		why:  "runs on several hosts, whoever records them",
	},
	{
		of:    []string{"record/capture/..."},
		never: []string{"store", "fleet/...", "replay/...", "web/...", "seal", "model/posix"},
		why:   "capture carries, and does not interpret",
	},
	{
		of:    []string{"record/capture/...", "record/count", "record/flight", "record/tracer", "record/tracer/config", "record/tracer/control"},
		never: []string{"analyze/...", "fleet/...", "format/...", "replay/...", "store", "transform/...", "web/..."},
		why:   "what records does not know what is made of it",
	},
	{
		of:    []string{"record/capture/ebpf"},
		only:  []string{"event", "internal/...", "predicate", "record/capture", "record/capture/digest", "record/capture/mapped", "record/capture/running", "record/internal/bpf", "trace"},
		never: []string{"record/count"},
		why:   "a back end: it takes nothing from the others, and does not count",
	},
	{
		of:    []string{"record/count"},
		only:  []string{"event", "internal/ptracer", "model/aggregate", "record/capture", "record/capture/running", "record/internal/bpf"},
		never: []string{"record/capture/ebpf", "record/capture/ptrace", "record/capture/fusefs", "seal", "model/posix"},
		why:   "counting is apart from recording",
	},
	{
		of:    []string{"record/internal/bpf"},
		only:  []string{"event", "predicate", "record/capture", "record/capture/running"},
		never: []string{"seal", "model/..."},
		why:   "what the programs of recording and of counting have in common",
	},
	{
		of: []string{"record/capture/fusefs"},
		only: []string{"record/capture", "record/capture/digest", "record/capture/running", "event", "model/similar",
			"trace", "internal/..."},
		why: "a file system of its own: it takes nothing from the other back ends",
	},
	{
		of:    []string{"fleet/agent", "fleet/broker", "fleet/collector", "fleet/key", "fleet/batch", "fleet/spool", "fleet/staging"},
		never: []string{"event"},
		why:   "agents and collectors do not look inside what they ship",
	},
	{
		of:   []string{"fleet/agent"},
		only: []string{"fleet/key", "fleet/batch", "fleet/spool", "fleet/staging"},
		why:  "what runs on every host knows neither the collector nor the capture",
	},
	{
		of:    []string{"fleet/source"},
		never: []string{"store", "replay/...", "fleet/broker", "fleet/collector"},
		why:   "where capture meets fleet, on the agent's side",
	},
	{
		of:    []string{"record/flight"},
		never: []string{"record/capture/...", "replay/...", "store"},
		why:   "it keeps frames and their state, whoever captured them",
	},
	{
		of: []string{"record/tracer"},
		never: []string{"record/capture/ebpf", "record/capture/ptrace", "record/capture/fusefs", "pipe/chain", "pipe/sink", "pipe/wire",
			"replay/...", "store", "cmd/..."},
		why: "records from whatever captured them to whoever takes them",
	},
	{
		of:    []string{"record/tracer/config"},
		only:  []string{"record/capture", "pipe/chain", "predicate", "record/tracer", "internal/spell"},
		never: []string{"std:os/...", "std:net/..."},
		why:   "a text and what it means, whatever the machine",
	},
	{
		of:   []string{"record/tracer/control"},
		only: []string{"internal/rundir"},
		why:  "requests and answers: it does not know what tracers are",
	},
	{
		of:    []string{"model/history"},
		only:  []string{"event", "model/posix", "trace", "internal/..."},
		never: []string{"std:os/...", "std:net/..."},
		why:   "the library's analyses: a tape, and nothing else",
	},
	{
		of:    []string{"analyze/flow"},
		only:  []string{"causal", "causal/happens", "event", "predicate", "model/similar", "trace", "internal/...", "pipe/..."},
		never: []string{"std:os/...", "std:net/...", "cmd/...", "analyze/report/..."},
		why:   "an analysis: tapes in, answers out; analyze/flow/show writes them",
	},
	{
		of:    []string{"analyze/flow/show"},
		never: []string{"std:os/...", "std:net/...", "cmd/...", "replay/...", "record/capture/...", "seal"},
		why:   "it writes what flow found",
	},
	{
		of:    []string{"model/aggregate"},
		only:  []string{"event", "event/facts"},
		never: []string{"std:os/...", "std:net/...", "other:..."},
		why:   "sums of calls: the same of a kernel's and of a tape's, whoever counts",
	},
	{
		of:    []string{"analyze/alarm"},
		only:  []string{"event", "model/aggregate", "predicate"},
		never: []string{"std:os/...", "std:net/...", "other:..."},
		why:   "rules over sums, whoever counted and whoever is told",
	},
	{
		of: []string{"analyze/aggregate/..."},
		only: []string{"analyze/alarm", "event", "internal/account", "internal/jsonout", "internal/wallclock",
			"model/aggregate", "predicate", "analyze/report"},
		why: "what is done with counts does not know who counted",
	},
	{
		of: []string{"analyze/report/..."},
		only: []string{"analyze/flow", "analyze/flow/show", "analyze/report", "analyze/report/...", "causal/happens", "event", "event/facts",
			"internal/...", "model/history", "model/posix", "trace"},
		never: []string{"std:os/...", "std:net/..."},
		why:   "numbers and their pictures: whoever measured, and wherever they are shown",
	},
	{
		of:    []string{"store/catalogue"},
		only:  []string{"predicate", "analyze/report/...", "internal/wallclock", "store", "trace", "pipe/wholefile"},
		never: []string{"record/capture/...", "replay/...", "seal", "fleet/...", "web/...", "cmd/..."},
		why:   "a table of tapes, wherever they come from",
	},
	{
		of: []string{"store/lake"},
		only: []string{"analyze/flow", "analyze/report/...", "pipe/objectstore", "pipe/wholefile", "store",
			"store/catalogue", "trace"},
		never: []string{"record/capture/...", "replay/...", "seal", "fleet/...", "web/...", "cmd/..."},
		why:   "tables of tapes, wherever they come from",
	},
	{
		of:    []string{"record/sealing"},
		never: []string{"record/capture/...", "store", "replay/..."},
		why:   "streams to tapes, whoever captured them",
	},
	{
		of:    []string{"record/remake"},
		never: []string{"record/capture/...", "store", "replay/..."},
		why:   "tapes to tapes, by whatever command",
	},
	{
		of:    []string{"record/session", "record/tracer/tracerun", "record/throttlerun", "record/top", "record/mountrun", "record/flight/show"},
		never: []string{"store", "replay/...", "web/...", "fleet/...", "other:github.com/spf13/..."},
		why:   "what a recording program needs, without the command line",
	},
	{
		of:    []string{"fleet/service", "fleet/archiverun"},
		never: []string{"record/capture/...", "replay/...", "web/...", "other:github.com/spf13/..."},
		why:   "what a program of the fleet needs, without the command line",
	},
	{
		of: []string{"fleet/archive/..."},
		only: []string{"fleet/archive", "fleet/staging", "pipe/chain", "pipe/objectstore", "pipe/wholefile",
			"record/sealing", "trace"},
		never: []string{"record/capture/...", "replay/...", "store", "store/catalogue", "web/...", "cmd/..."},
		why:   "streams to tapes, and tapes to where they are kept; who else wants to know of them is told",
	},
	{
		of:    []string{"web/spanindex"},
		only:  []string{"trace"},
		never: []string{"std:os/...", "std:net/..."},
		why:   "spans of time, whatever they are of",
	},
	{
		of:    []string{"web/viewmodel"},
		only:  []string{"causal", "causal/happens", "event", "format/stracetext", "analyze/flow", "analyze/report", "model/similar", "web/spanindex", "trace", "internal/..."},
		never: []string{"std:net/...", "record/capture/...", "replay/...", "store", "seal"},
		why:   "what there is to see of tapes, whoever shows it",
	},
	{
		of:    []string{"web"},
		only:  []string{"predicate", "analyze/report/page", "web/viewmodel", "internal/httpguard"},
		never: []string{"record/capture/...", "replay/...", "store", "seal", "std:os/...", "other:..."},
		why:   "it can show what its scene has, and read no file",
	},
	{
		of:    []string{"transform/merge", "transform/slice", "analyze/diff", "transform/repair", "transform/anon"},
		never: []string{"record/capture/...", "replay/...", "store", "fleet/...", "web/...", "format/...", "cmd/..."},
		why:   "tapes to tapes, whoever made them",
	},
	{
		of:    []string{"format/..."},
		never: []string{"record/capture/...", "replay/...", "store", "fleet/...", "web/..."},
		why:   "formats convert; what they read is a file, whoever made it",
	},
	{
		of:    []string{"format/all"},
		only:  []string{"format/...", "trace"},
		never: []string{"seal", "transform/..."},
		why:   "foreign files to streams; format/tapes makes tapes of them",
	},
	{
		of: []string{"format/open"},
		only: []string{"format/all", "format/tapes", "pipe", "pipe/wholefile", "record/sealing", "trace",
			"transform/slice"},
		why: "the front door: what a file is, and who opens it",
	},
	{
		of:    []string{"replay/..."},
		never: []string{"record/capture/...", "seal"},
		why:   "a replay needs a tape, not what made it",
	},
	{
		of:    []string{"replay/linearize"},
		only:  []string{"event", "replay/effect"},
		never: []string{"std:os/...", "other:..."},
		why:   "pure: an order found from events alone",
	},
	{
		of:    []string{"replay/options"},
		only:  []string{},
		never: []string{"std:os/...", "other:..."},
		why:   "values and their names",
	},
	{
		of:    []string{"replay/content"},
		only:  []string{"event", "replay/options", "trace", "tree"},
		never: []string{"std:os/..."},
		why:   "bytes, whatever calls move them",
	},
	{
		of:   []string{"replay/result"},
		only: []string{"event", "internal/histogram", "replay/options", "tree"},
		why:  "what came of a replay, whoever did it",
	},
	{
		of: []string{"replay/plan"},
		only: []string{"causal", "event", "model/posix", "replay/content", "replay/effect", "replay/eventsource",
			"replay/initialtree", "replay/linearize", "replay/options", "replay/order", "trace", "tree"},
		why: "what is to be done, whoever does it",
	},
	{
		of:   []string{"replay/schedule"},
		only: []string{"event", "replay/content", "replay/options", "replay/plan", "replay/result"},
		why:  "it hands out steps, and makes no call",
	},
	{
		of:    []string{"replay/verify"},
		never: []string{"replay/schedule", "replay/execute", "replay/hosts"},
		why:   "it compares what it is given, whoever made the calls",
	},
	{
		of:    []string{"replay/execute"},
		never: []string{"replay", "replay/hosts"},
		why:   "the child process knows neither its parent's options nor how a team is connected",
	},
	{
		of:    []string{"cmd/iotape", "cmd/internal/..."},
		never: []string{"store/...", "pipe/objectstore", "fleet/broker"},
		why:   "iotape is small, and starts at once; what needs these is in cmd/iotape-full",
	},
	{
		of:    []string{"cmd/iotape-agent"},
		never: []string{"store", "web/...", "fleet/broker"},
		why:   "the agent is small and static",
	},
	{
		of:   []string{"bench", "bench/accuracy", "bench/accuracy/run", "bench/flowtape", "bench/run", "bench/zoom"},
		only: []string{"bench", "bench/accuracy", "trace", "event", "analyze/report", "analyze/report/page", "bench/workload"},
		why:  "measures the program from outside, and reads its tapes",
	},
	{
		of:    []string{"bench/flowpeers"},
		never: []string{"analyze/flow", "record/capture/...", "replay/...", "store", "web/..."},
		why:   "measures two libraries beside other ways to compute the same",
	},
	{
		of:   []string{"bench/flowfaults"},
		only: []string{"analyze/flow", "trace"},
		why:  "records with the program from outside, and asks the library what it finds",
	},
	{
		of:    []string{"internal/testenv"},
		only:  []string{},
		never: []string{"other:..."},
		why:   "every package's tests import it",
	},
}

// owners are the packages, separated by spaces, that alone may import something.
var owners = []struct {
	what, owner, why string
}{
	{"other:github.com/duckdb/...", "store", "each program that links it grows by 60 MB"},
	{"other:github.com/apache/iceberg-go/...", "store/lake", "the lake alone knows how tables are laid out"},
	{"other:github.com/hanwen/go-fuse/...", "record/capture/fusefs", "there is one file system"},
	{"other:github.com/prometheus/client_golang/...", "analyze/aggregate/meter fleet/collector", "what has counters hands them over"},
	{"other:charm.land/...", "analyze/aggregate/view", "there is one live screen"},
	{"other:github.com/nats-io/nats-server/...", "fleet/broker", "the agent must not contain a server"},
	{"other:github.com/pelletier/...", "record/tracer/config fleet/agent", "configurations are of tracers and agents"},
	{"cmd/iotape", "", "programs are not libraries"},
	{"cmd/iotape-full", "", "programs are not libraries"},
	{"cmd/iotape-agent", "", "programs are not libraries"},
	{"cmd/internal/...", "cmd/iotape cmd/iotape-full cmd/internal/command", "what their commands share, and nobody else"},
	{"internal/testenv", "", "it is for tests"},
}

var badNames = []string{"util", "utils", "common", "helper", "helpers", "types", "manager"}

// A pkg is what the rules need of a package.
type pkg struct {
	path     string // import path
	standard bool
	imports  []string // directly
	deps     []string // and through others
}

// name returns the path as patterns write it.
func (p *pkg) name() string {
	switch {
	case p.path == module:
		return "."
	case strings.HasPrefix(p.path, module+"/"):
		return strings.TrimPrefix(p.path, module+"/")
	case p.standard:
		return "std:" + p.path
	}
	return "other:" + p.path
}

func (p *pkg) ours() bool { return p.path == module || strings.HasPrefix(p.path, module+"/") }

func match(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if all, ok := strings.CutSuffix(pattern, "..."); ok {
			return strings.HasPrefix(name, all) || name == strings.TrimSuffix(all, "/")
		}
		return name == pattern
	})
}

// check returns what in the packages breaks the rules.
func check(pkgs map[string]*pkg) []string {
	var broken []string
	complain := func(p *pkg, dep, why string) {
		broken = append(broken, fmt.Sprintf("%s imports %s: %s", p.name(), dep, why))
	}
	for _, p := range pkgs {
		if !p.ours() {
			continue
		}
		for _, r := range rules {
			if !match(p.name(), r.of) {
				continue
			}
			for _, path := range p.deps {
				d, direct := pkgs[path], slices.Contains(p.imports, path)
				if d == nil || !direct && !d.ours() {
					continue
				}
				forbidden := match(d.name(), r.never)
				notListed := direct && d.ours() && r.only != nil && !match(d.name(), r.only)
				if forbidden || notListed {
					complain(p, d.name(), r.why)
				}
			}
		}
		for _, path := range p.imports {
			for _, o := range owners {
				if d := pkgs[path]; d != nil && match(d.name(), []string{o.what}) &&
					!slices.Contains(strings.Fields(o.owner), p.name()) {
					complain(p, d.name(), o.why)
				}
			}
		}
	}
	slices.Sort(broken)
	return broken
}

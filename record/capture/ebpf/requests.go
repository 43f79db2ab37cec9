// SPDX-License-Identifier: Apache-2.0

package ebpf

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/iotape/iotape/record/internal/bpf"
	"github.com/iotape/iotape/trace"
)

// uringHooks are the programs for io_uring, by the kernel's tracepoint. They are of use
// together only.
var uringHooks = map[string]string{
	"on_uring_create": "io_uring_create", "on_uring_submit": "io_uring_submit_req", "on_uring_refused": "io_uring_req_failed",
	"on_uring_link": "io_uring_link", "on_uring_fail_link": "io_uring_fail_link",
	"on_uring_complete": "io_uring_complete", "on_uring_overflow": "io_uring_cqe_overflow",
}

// olderHooks are the names that tracepoints had before (Linux 6.3).
var olderHooks = map[string]string{"io_uring_submit_req": "io_uring_submit_sqe"}

// requestNames are the programs for requests in the order in which they are attached: the
// last to see a request first. They come after all others. But what an ending thread leaves of
// requests is ended before the thread is, by on_exit, which therefore is attached once more.
var requestNames = []string{"on_uring_complete", "on_uring_overflow", "on_uring_fail_link", "on_uring_link",
	"on_uring_refused", "on_uring_submit", "on_sys_enter_requests", "on_exit_requests", "on_exit"}

// exitWithRequests is the program that takes the place of on_sys_exit when they are attached.
const exitWithRequests = "on_sys_exit_requests"

// requestPrograms are the programs for requests to io_uring and AIO. To verify them takes
// longer than to verify all others, and most programs make no requests.
type requestPrograms struct {
	spec *ebpf.CollectionSpec
	maps map[string]*ebpf.Map // those of the other programs

	loaded []*ebpf.Program // in the order of requestNames
	exit   *ebpf.Program   // on_sys_exit_requests

	mu    sync.Mutex // of what follows: a recording may end while they are attached
	links []link.Link
	until []link.Link // on_exit and on_sys_exit, while they are not attached
	ended bool
}

// States of the programs for requests (include/record.h).
const (
	requestsWanted = 1
	requestsReady  = 2
)

// requestsLater reports whether the programs for requests are loaded when they are wanted: a
// thread that makes a queue can be held until then, and no queue is older than the recording.
func (c *config) requestsLater() bool {
	o := c.options
	return c.block && !c.all && c.cgroup == 0 && len(o.Command) > 0 && o.Prefilter == nil
}

// take takes the programs for requests out of a specification. later says whether they are loaded
// when they are wanted.
func (r *requestPrograms) take(spec *ebpf.CollectionSpec, later bool) {
	r.spec = part(spec, map[string]*ebpf.ProgramSpec{})
	for _, name := range requestNames {
		if spec.Programs[name] == nil {
			continue // the kernel has no such tracepoint
		}
		r.spec.Programs[name] = spec.Programs[name]
		if name != "on_exit" {
			delete(spec.Programs, name)
		}
	}
	r.spec.Programs[exitWithRequests] = spec.Programs[exitWithRequests]
	delete(spec.Programs, exitWithRequests)
	if !later {
		delete(spec.Programs, "on_sys_exit")
	}
}

// keep keeps the maps that the programs use.
func (r *requestPrograms) keep(all map[string]*ebpf.Map) error {
	r.maps = map[string]*ebpf.Map{}
	for name, m := range all {
		var err error
		if r.maps[name], err = m.Clone(); err != nil {
			return err
		}
	}
	return nil
}

// load loads the programs for requests.
func (r *requestPrograms) load() error {
	loaded, err := loadPrograms(r.spec, r.maps, loaders())
	if err != nil {
		return bpf.Rejected(err)
	}
	for _, name := range requestNames {
		if loaded[name] != nil {
			r.loaded = append(r.loaded, loaded[name])
		}
	}
	r.exit = loaded[exitWithRequests]
	return nil
}

// attach attaches them; more comes before.
func (r *requestPrograms) attach(more ...*ebpf.Program) (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return nil
	}
	r.links, err = bpf.Attach(r.links, slices.Concat(more, r.loaded))
	if err == nil {
		// Until here both saw a thread's end and a call's; the second of them found nothing left of it.
		closeLinks(&r.until)
	}
	return err
}

func (r *requestPrograms) detach() {
	r.mu.Lock()
	defer r.mu.Unlock()
	closeLinks(&r.links)
	closeLinks(&r.until)
	r.ended = true
}

func closeLinks(links *[]link.Link) {
	for _, l := range *links {
		l.Close()
	}
	*links = nil
}

func (r *requestPrograms) close() {
	for _, m := range r.maps {
		m.Close()
	}
	for _, prog := range r.loaded {
		prog.Close()
	}
	if r.exit != nil {
		r.exit.Close()
	}
}

// addRequests attaches the programs for requests as soon as a thread wants them, and lets it
// go on then.
func (d *drain) addRequests() {
	if atomic.LoadUint64(&d.p.shared.RequestPrograms) != requestsWanted {
		return
	}
	defer bpf.ForgetTypes()
	r := &d.p.requests
	err := r.load()
	if err == nil {
		err = r.attach(r.exit)
	}
	if err != nil {
		d.note("requests to io_uring and AIO are not recorded: " + err.Error())
		d.lose(1, trace.LossUnseen)
	}
	atomic.StoreUint64(&d.p.shared.RequestPrograms, requestsReady)
}

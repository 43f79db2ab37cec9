// SPDX-License-Identifier: Apache-2.0

package layout

import "github.com/iotape/iotape/event"

// Structures of calls that wait, and of asynchronous requests (poll(2),
// epoll_ctl(2), futex_waitv(2), io_submit(2), io_uring_setup(2)).

var (
	pollfd = all(fd("fd", 0), flags("events", 4, 2, event.PollNames), flags("revents", 6, 2, event.PollNames))

	futexWaitv = all(x64("val", 0), ptr("uaddr", 8), flags("flags", 16, 4, event.FutexNames))

	iocb = all(
		x64("aio_data", 0), u32("aio_key", 8), flags("aio_rw_flags", 12, 4, event.ReadWriteNames), enum("aio_lio_opcode", 16, 2, aioOps), i16("aio_reqprio", 18),
		fd("aio_fildes", 20), ptr("aio_buf", 24), u64("aio_nbytes", 32), i64("aio_offset", 40), flags("aio_flags", 56, 4, aioFlags), fd("aio_resfd", 60))
	ioEvent = all(x64("data", 0), ptr("obj", 8), i64("res", 16), i64("res2", 24))

	uringParams = of(
		u32("sq_entries", 0), u32("cq_entries", 4), brief(flags("flags", 8, 4, event.UringSetupNames)), brief(u32("sq_thread_cpu", 12)), brief(u32("sq_thread_idle", 16)),
		flags("features", 20, 4, event.FeatureNames), u32("wq_fd", 24),
		nested("sq_off", 40, 40, all(u32("head", 0), u32("tail", 4), u32("ring_mask", 8), u32("ring_entries", 12), u32("flags", 16), u32("dropped", 20), u32("array", 24), ptr("user_addr", 32))),
		nested("cq_off", 80, 40, all(u32("head", 0), u32("tail", 4), u32("ring_mask", 8), u32("ring_entries", 12), u32("overflow", 16), u32("cqes", 20), u32("flags", 24), ptr("user_addr", 32))))
)

// epollEvent is struct epoll_event, which is packed on x86-64 (eventpoll.h).
func epollEvent(data uint16) *record {
	return all(flags("events", 0, 4, event.EpollNames), nested("data", data, 8, all(u32("u32", 0), u64("u64", 0))))
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the programs and the Go side share: the stream's records (trace/record.go)
 * and the tables that user space fills or reads (table.go, requests.go; of
 * record/capture/ebpf: held.go). Sizes are asserted on both sides. */
#pragma once

#include "operations.gen.h"

/* Stream records. */
enum { REC_CALL = 1, REC_DATA, REC_ENTER, REC_TASK, REC_FORK, REC_EXIT, REC_WAKE = 11, REC_SIGNAL = 13, REC_PROCESS = 15 };
enum { CALL_MORE = 1, CALL_COMPAT = 2, CALL_INTERRUPTED = 4, CALL_DELAYS = 8, CALL_MISSED = 32 };
enum { DATA_LAST = 1 };
enum { WAKE_INTERRUPT = 1 };
enum { PIECE_MISSING = 1, PIECE_OMITTED = 2, PIECE_SHAPE = 4, PIECE_TRUNCATED = 8, PIECE_BEFORE = 32 };
enum { SHARE_VM = 0x100, SHARE_FS = 0x200, SHARE_FILES = 0x400, SHARE_THREAD = 0x10000, NEW_MOUNTS = 0x20000 };

struct prefix {
	u16 type, op;
	u32 pid, tid, flags;
};
struct rec_call {
	struct prefix p;
	u64 enter, exit, cpu;
	s64 ret;
	u64 args[IOT_MAX_ARGS];
	u32 nr;
	u8 nobjects, zero;
	u16 npieces;
};
struct delays { /* behind a rec_call with CALL_DELAYS: ns that the thread waited for a processor */
	u32 before, within; /* the call, since the one before; and the call itself */
};
struct rec_data { /* and REC_ENTER, REC_PROCESS */
	struct prefix p;
	u64 enter;
	u16 npieces, zero[3];
};
struct rec_task {
	struct prefix p;
	u64 time;
	u32 ppid, pgid, sid, uid, gid, nspid;
	char comm[16];
	u32 nstid, zero;
};
struct rec_fork {
	struct prefix p;
	u64 time;
	u32 child, child_tid;
	u64 share;
};
struct rec_exit {
	struct prefix p;
	u64 time;
	u32 status, zero;
};
struct rec_wake { /* of the thread that was woken, in the operation that it was in */
	struct prefix p;
	u64 time;
	u32 pid, tid; /* who woke it; 0: an interrupt */
};
struct rec_signal { /* of the thread that gets it; flags are what becomes of it */
	struct prefix p;
	u64 time;
	u8 nobjects, zero;
	u16 npieces;
	u32 zero2;
	struct {
		u8 arg, flags, zero[2];
		u32 len;
		u64 off;
	} piece;
	u8 info[IOT_SIGINFO_BYTES];
};
struct object {
	u64 ino, size, pos;
	u32 dev, rdev, mode, flags, nlink, uid, gid, fd;
	s8 arg, zero[3];
	u32 past; /* of a call: 1 + how far the position was past pos when it returned */
};
struct piece {
	u8 arg, flags, zero[2];
	u32 len;
	u64 off;
};
_Static_assert(sizeof(struct prefix) == 16, "prefix");
_Static_assert(sizeof(struct rec_call) == 104, "rec_call");
_Static_assert(sizeof(struct delays) == 8, "delays");
_Static_assert(sizeof(struct rec_data) == 32, "rec_data");
_Static_assert(sizeof(struct rec_task) == 72, "rec_task");
_Static_assert(sizeof(struct rec_fork) == 40, "rec_fork");
_Static_assert(sizeof(struct rec_exit) == 32, "rec_exit");
_Static_assert(sizeof(struct rec_wake) == 32, "rec_wake");
_Static_assert(sizeof(struct rec_signal) == 48 + IOT_SIGINFO_BYTES, "rec_signal");
_Static_assert(sizeof(struct object) == 64, "object");
_Static_assert(sizeof(struct piece) == 16, "piece");

/* One row of the operation table, by system-call number (table.go). */
enum {
	CAP_MADE = 2,    /* of a command: the result is a descriptor */
	CAP_FDS = 4,     /* the memory is two descriptors */
	CAP_FD_HEAD = 8, /* its first word is one */
	CAP_FD_TAIL = 16, /* and that of each element behind the head */
};
struct cap {
	u8 arg, kind, dir, when, len, len_arg, flags, cond_arg;
	u32 bytes, cond_bits;
	u64 cond_mask;
	u8 tail_off, tail_width, tail_max, tail_ptr;
	u16 tail_elem, zero;
	u32 keep, zero2; /* so many bytes of its content are wanted */
};
enum {
	SPEC_FD_RESULT = 1,
	SPEC_FCNTL = 2,
	SPEC_IDENTITY = 4,
	SPEC_HOLD = 8,
	SPEC_NO_RETURN = 16,
	SPEC_ENTRY = 32, /* some capture is at entry */
	SPEC_POSITION = 128, /* moves the position of argument 0 */
	SPEC_SENDS = 64, /* tells the ends of sockets, if they are for datagrams */
	SPEC_BEFORE = 256,   /* some memory is read at entry and at exit */
	SPEC_OFFER = 512,    /* a word in memory says how much room there is */
	SPEC_INNER = 1024,   /* there may be descriptors in its memory */
	SPEC_ENDS = 1 << 11, /* tells the ends of sockets */
	SPEC_SLOTS = 1 << 12, /* may fill a ring's table of files */
	SPEC_AIO_SUBMIT = 1 << 13,
	SPEC_AIO_REAP = 1 << 14,
	SPEC_AIO_END = 1 << 15,
	SPEC_AT_ENTRY = SPEC_ENTRY | SPEC_BEFORE, /* there is something to do */
};
struct spec {
	u16 op, flags;
	u8 ncaps, nobjects, objects[IOT_MAX_OBJS - 1];
	u8 hold_arg, offer_arg, offer_off;
	u8 use;        /* what the call has to do with mapped files (mapped.h) */
	u32 hold_keep; /* of the content of a held call, so many bytes are wanted */
	u16 prefilter;    /* what the filter says of it (prefilter.h) */
	u16 opens;     /* what opens by a name: 1 + the argument that it is in, and 256 * (1 + that of the flags) */
	u8 name;       /* 1 + the argument that is its first name and still there when it returns; 0: none */
	u8 moves;      /* which way it moves the bytes that it returns the number of, or of messages */
	u8 queue;      /* it makes a queue of requests (io_setup, io_uring_setup) */
	u8 facts;      /* it changes users, groups, capabilities or namespaces (process.h) */
	struct cap caps[IOT_MAX_CAPS];
};
enum { MOVES_READ = 1, MOVES_WRITTEN = 2, MOVES_MESSAGES = 4 };
_Static_assert(sizeof(struct cap) == 40, "cap");
_Static_assert(sizeof(struct spec) == 24 + 6 * 40, "spec");

/* One row of the operation table for requests (requests.go): what a call's has, and where
 * in the program's 64 bytes its arguments stand. */
struct field {
	u8 off, size, sign, alt, alt_size, zero[3];
};
struct request_row {
	struct spec s;
	struct field fields[IOT_MAX_ARGS];
	u8 fd_arg; /* argument that the request's own descriptor is */
	u8 flags, zero[6];
};
enum {
	ROW_DIRECT = 1, /* may make a slot of the ring's table, not a descriptor */
	ROW_SHOTS = 2,  /* may complete more than once */
	ROW_SELECT = 4, /* a provided buffer is taken when it is needed (struct io_rw) */
	ROW_SELECT_MSG = 8, /* likewise (struct io_async_msghdr) */
	ROW_ZC = 16,    /* a second completion says that the buffer is free */
	ROW_SLOTS = 32, /* fills the ring's table */
	ROW_FULL = 64,  /* moves all of its buffer unless it fails */
	ROW_SPLICE = 128, /* a flag says that argument 0 is a slot */
};
enum { URING_ROWS = 128, REQUEST_ROWS = 160 }; /* rows of AIO begin at URING_ROWS */
_Static_assert(sizeof(struct field) == 8, "field");
_Static_assert(sizeof(struct request_row) == sizeof(struct spec) + 56, "request_row");

/* What the recorder reads while a thread is held, by thread (held.go). */
struct pending_key {
	u32 tid, n; /* from 0 */
};
enum { PART_NONE, PART_BYTES, PART_VECTOR, PART_STRING, PART_MOVED, PART_MESSAGES, PART_MSGDATA,
       PART_MAPPING, PART_PAGES, PART_PAGES_AT, PART_STORED, PART_VECTOR32 };
enum { MAX_PARTS = IOT_MAX_CAPS + 1 };
#define NO_CONTENT 0xff /* part.arg: it is not content of the call */
struct part {
	u64 addr; /* of the bytes, or of the iovec array */
	u64 len;  /* still to be read */
	u64 off;  /* position of the first of them within the argument's bytes */
	u32 count; /* elements of the array */
	u8 arg, kind, flags, zero;
};
struct pending {
	u64 enter;
	u32 pid, tid; /* of the record */
	u32 nparts;
	u16 op, zero;
	u64 args[IOT_MAX_ARGS];
	s64 ret;
	u64 pos[2]; /* of the first two objects */
	u32 mode[2];
	struct part parts[MAX_PARTS];
	u64 exit;
};
_Static_assert(sizeof(struct part) == 32, "part");
_Static_assert(sizeof(struct pending) == 24 + 48 + 8 + 16 + 8 + 7 * 32 + 8, "pending");

/* A followed thread: the value in its task storage (follow.go writes the first). */
enum {
	TASK_IDENTIFIED = 1,
	TASK_IN_CALL = 2,
	TASK_PENDING = 4,
	TASK_EXEC_LATE = 8,
	TASK_HELD = 16,
	TASK_FAULT = 32,
	TASK_LATE = 64,
	TASK_JOINED = 1 << 8,    /* followed since it ran, and no entry of a call was seen yet */
	TASK_EXCLUDED = 1 << 9,  /* not to be followed: the recorder's */
	TASK_REQUESTS = 1 << 10, /* has submitted some */
	TASK_AIO_LATE = 1 << 11, /* not all of its control blocks could be read at entry */
	TASK_BEFORE_EXEC = 1 << 12, /* it is the stub that will become the command (count.c) */
	TASK_EXECUTED = 1 << 14,    /* has executed a program, and the call has yet to return */
	TASK_ADDED = 1 << 15,       /* the call under way is a read that brought pages into the page cache: offered is the first */
};
struct task {
	u64 enter, cpu;
	u64 args[IOT_MAX_ARGS];
	u32 nr, tid, flags, shard;
	u64 file;  /* whose position the call under way moves; 0: none, only compared */
	s64 start; /* where that was before it */
	u64 offered; /* room that the call under way was told of; ~0: not known */
	u32 npending; /* TASK_PENDING: so many of pendings, unless the recorder did them */
	u32 ppid, pgid, sid, uid, gid; /* as announced */
	u64 comm[2];
	u64 delay;    /* ns that it had waited for a processor when its call began */
	u64 returned; /* and when its last call that was recorded returned; DELAY_UNKNOWN: none was */
};
_Static_assert(sizeof(struct task) == 160, "task");
#define DELAY_UNKNOWN (1ull << 62)

/* A thread that was told to stop (guard.go). */
struct held {
	u32 pid, sig;
	u64 start; /* of the thread, in ns since boot: tids come again */
};

/* Shared memory, read by the recorder without system calls (shared.go). */
#define MAX_CPUS 1024
#define MAX_SHARDS 8
struct cpu_slot {
	u64 active; /* a hook is running */
	u64 since;  /* and this is not after the times that it writes */
	u64 interrupts; /* that are being handled, see wake.h */
	u64 zero[5];
};
/* A test of the filter (prefilter.h). */
struct prefilter_step {
	u8 field, zero[3];
	short yes, no; /* always further up, or an end */
	s64 lo, hi;
};
_Static_assert(sizeof(struct prefilter_step) == 24, "prefilter_step");
enum { PREFILTER_STEPS = 256 };
/* An end of names that the filter asks for: of the last 16 bytes, those in the mask. */
struct suffix {
	u64 value[2], mask[2];
};

/* The programs for requests are many instructions to verify. For a command they are loaded when it makes
 * its first queue: the thread that did so is held until then. */
enum { REQUESTS_LATER, REQUESTS_WANTED, REQUESTS_READY };
struct common {
	u64 lost[MAX_SHARDS]; /* records that their ring had no room for, by shard */
	u64 untracked;        /* threads that could not be followed */
	u64 stops;            /* signals sent to hold threads */
	u64 release;          /* set by the recorder: record and hold no more */
	u64 mapped;           /* files that programs can store to through mappings */
	u64 mappings;         /* calls that mapped files */
	u64 untold;           /* touches that had no room in their ring */
	u64 unmapping;        /* calls under way that change mappings of such files */
	u64 followed;         /* counted by count_followed */
	u64 entered;          /* processes that entered the cgroup */
	u64 prefiltered;         /* calls that began earlier are not judged when they return */
	u64 unjoined;            /* processes that entered the cgroup whose threads are not all followed */
	u64 pages;               /* reads of mapped pages that could not be looked up */
	u64 requests;            /* requests of io_uring that there was no room to follow for */
	u64 request_programs;    /* REQUESTS_*: are they attached? */
	u64 blocks;              /* requests to block devices that there was no room to follow, or to tell of */
	u64 unwritten;           /* records that did not get the room that their ring had */
	u64 unplaced;            /* calls in control groups that the filter's table does not have (prefilter.h) */
	u64 moved;               /* ns, when a followed process was last moved to another control group */
	u64 asked;               /* when a thread was told to stop that the recorder has not heard of; 0 if it hears */
	u64 zero[5];
	u64 lost_at[MAX_SHARDS]; /* when the first was lost that the recorder does not know of */
	struct cpu_slot cpus[MAX_CPUS];
	struct prefilter_step prefilter[PREFILTER_STEPS]; /* changed only while no row of the table leads to it */
};
_Static_assert(sizeof(struct common) == 320 + 64 * MAX_CPUS + 24 * PREFILTER_STEPS, "common");

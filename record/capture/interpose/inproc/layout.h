// SPDX-License-Identifier: Apache-2.0
/* What the code in the process and the recorder share (../arena.go). Sizes and offsets are
 * compared by a test with those of the Go side. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef signed char s8;
typedef int s32;
typedef long s64;

#include "record.h"

enum {
	CALLS = 512,        /* call numbers that the tables have; others are made by the tracer */
	ROWS = 384,         /* of operations that are recorded here */
	CLOCKS = 64,        /* conversions of the time stamp counter, used in turn */
	DESCRIPTORS = 1024, /* of a process that are remembered */
	WATCHED = 16,
	DEVICES = 16,       /* of a process whose file systems are remembered */
	SLOTS = 256,        /* of an arena; the last has no thread: its calls are made in the stubs */
	CODE_BYTES = 131072, /* before control */
	COMMANDS = 1024,    /* room in the table of commands, a power of 2 */
};

/* What is done with a call, by its number (control.class). */
enum {
	CLASS_PASS,   /* made, not recorded */
	CLASS_RECORD, /* made and recorded here */
	CLASS_LATE,   /* made here, recorded by the tracer when it has returned */
	CLASS_CHECK,  /* before() decides */
	CLASS_TRACE,  /* made and recorded by the tracer */
};

/* What before() has to look at (control.check). */
enum {
	CHECK_NONE,
	CHECK_POSITION, /* moves a position that threads may share */
	CHECK_CLOSE,    /* ends the descriptor in argument 0 */
	CHECK_CONTROL,  /* fcntl: may change what is remembered of the descriptor in argument 0 */
	CHECK_FILES,    /* changes attributes of files that descriptors may stand for */
	CHECK_MMAP,
	CHECK_RANGE,    /* changes the mappings in a range */
	CHECK_OFFER,    /* says in memory how much room there is, and gets the answer there */
	CHECK_MASK,     /* changes the signal mask */
	CHECK_RETURN,   /* sets the one of a signal frame */
	CHECK_WAIT,     /* has a mask while it waits */
	CHECK_ACTION,   /* changes what a signal does */
	CHECK_OPEN,     /* makes an open file that nothing else stands for */
	CHECK_SHARE,    /* makes another descriptor stand for an open file, perhaps another process's */
	CHECK_SHARE_1,  /* likewise, the one in argument 1, whose own open file ends */
	CHECK_MOVE,     /* moves a position if the offset in argument 3 is -1 */
	CHECK_RING,     /* io_uring: requests may move positions at any time; the tracer sees it (position_amd64.go) */
	CHECK_REQUEST,  /* ioctl: may change what is remembered of descriptors */
};

/* What the memory of a command is (command.memory). */
enum {
	COMMAND_UNUSED, /* no command */
	COMMAND_NONE,   /* it has none */
	COMMAND_IN,
	COMMAND_OUT,    /* of a call that succeeded */
	COMMAND_TRACE,  /* the tracer knows */
};

/* A command of fcntl or ioctl. */
struct command {
	u32 value;
	u16 bytes; /* of its memory */
	u8 ioctl, memory;
};

/* What the tracer is stopped for (slot.reason). */
enum {
	REASON_NONE,
	REASON_RECORD, /* the call is to be recorded by the tracer */
	REASON_ROOM,   /* the ring is full */
	REASON_SIGNAL, /* a signal waits until the call is recorded */
	REASON_AGAIN,  /* likewise, and the call has not been made */
};

/* Where a thread is (slot.state). */
enum {
	STATE_NONE,    /* not in our code */
	STATE_BEFORE,  /* in before() */
	STATE_CALLING, /* in the system call */
	STATE_AFTER,   /* it has returned; its record is not complete */
};

struct clock { /* ns = base_ns + (tsc - base_tsc) * mult / 2^32 */
	u64 base_tsc, base_ns, mult, zero;
};

/* struct sigaction of the kernel. */
struct action {
	u64 handler, flags, restorer, mask;
};

/* Written by the recorder alone; the program has it read-only, until orphaned(). */
struct control {
	u8 selectors[SLOTS]; /* of Syscall User Dispatch: 1 stops all calls of the thread that are not made here */
	u64 lo, hi;  /* the range of our mappings */
	u64 clock;   /* index of the clock that counts */
	u64 sizes;   /* each record is to say how large its files are */
	u64 watched; /* so many of inodes: calls on these files are recorded by the tracer; more than WATCHED: on all */
	u64 cgroups; /* device of the files of control groups: the tracer records writes to them; 0: none */
	u64 stubs, beyond; /* the range of stubs that are not there */
	struct clock clocks[CLOCKS];
	u8 class[CALLS];
	u8 fast[CALLS]; /* the class after before() said yes */
	u8 check[CALLS];
	u16 row[CALLS];
	struct spec rows[ROWS];
	u64 inodes[WATCHED]; /* of files that programs store to through mappings */
	struct command commands[COMMANDS]; /* hashed by command_at() */
	struct prefilter_step steps[PREFILTER_STEPS]; /* of the filter (filter.h) */
	u16 stacks[ROWS]; /* which calls have a stack, as spec.prefilter: the tracer follows it */
	struct prefilter_step stack_steps[PREFILTER_STEPS];
};

struct descriptor {
	u64 generation; /* of its table when it was looked up; 0: not known */
	u64 lock;       /* held by the thread that moves its position: its tid */
	u64 owned;      /* files.epoch before the open file was made that it alone stands for; 0: not known */
	u64 counted;    /* files.moves when position was the open file's; 0: not known */
	s64 position;   /* of the open file, if owned and counted are current */
	u64 type;       /* of a socket, by SO_TYPE; 0: not known */
	struct object o;
};

/* A process's descriptors. */
struct files {
	u64 generation; /* grows when the tracer saw a call that may have changed any of them; from 1 */
	u64 shared;     /* more than one thread uses it */
	u64 left;       /* its calls all stop, or its program uses Syscall User Dispatch itself */
	u64 masking;    /* signals whose handlers block SIGSYS, as the program wants it */
	struct action action; /* of SIGSYS, as the program wants it */
	u64 epoch;      /* grows when open files may have come to be shared; from 1 */
	u64 moves;      /* grows when a call that is not counted here may have moved a position; from 1 */
	u64 asks;       /* while it is not 0 positions are not counted: others may move them at any time */
	u64 devices[DEVICES]; /* 1 + 2 * device + whether its files' positions grow by what calls return */
	struct descriptor d[DESCRIPTORS];
};

#define SLOT_BYTES 16384

/* A thread. Offsets of the first fields are used by entry.S. */
struct slot {
	u64 nr, args[6]; /* of the call under way */
	u64 ret;         /* where the program goes on */
	u64 flags;       /* lahf in bits 8-15, seto in bits 0-7 */
	u64 rsp;
	u64 enter, exit; /* time stamp counter */
	s64 result;
	u64 state;
	u64 pending;     /* a signal waits for the end of our code */
	u64 reason;
	struct slot *self;
	const struct control *control;
	struct files *files;
	u8 *ring;
	u64 ring_bytes;
	u32 pid, tid;
	u64 head;        /* bytes produced; laps of the ring count in full */
	u64 lap_end[2];  /* where the records of a lap end, by the last bit of its number */
	u64 calls;       /* recorded */
	u64 locked;      /* address of the lock that the thread holds, 0 for none */
	s64 position;    /* of the file after the call under way, -1 if not known */
	u64 blocked;     /* 1: the program blocks SIGSYS; it is never blocked in truth */
	u64 last;        /* ns, when its last recorded call returned */
	u64 entry;       /* where stubs lead to: common, or raw while our code runs */
	u64 stub;        /* of the place that the call under way is made at */
	u64 tail;        /* bytes consumed: written by the recorder */
	u64 mask;        /* the thread's, while a signal is pending: all are blocked then */
	u64 given;       /* 1 + the argument that the kernel got another pointer for, 0: none */
	u64 original;    /* what the program gave */
	u64 was;         /* the old mask has SIGSYS, as the program wants it */
	struct action act; /* what the kernel got, or what a program wants for SIGSYS */
	u64 sixth[2];    /* likewise: the sixth argument of pselect6 */
	u64 open;        /* what entry is while the program runs: common, or raw for ever */
	u64 epoch;       /* files.epoch before the call under way, if that is an open */
	u64 offered;     /* room that the call under way was told of (CHECK_OFFER), ~0: not known */
	u64 who[7];      /* for the filter: parent, group, session, user, group of users, and name, 16 bytes */
	u64 foreign;     /* it has other numbers of processes or users than the recorder */
	u64 inherited;   /* SIGSYS was blocked when recording began, perhaps by a handler that runs */
	u64 frames;      /* of signals since then, if so: these have masks without SIGSYS */
};

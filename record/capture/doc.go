// SPDX-License-Identifier: Apache-2.0

// Package capture says what a recording is, whichever back end makes it: what to
// record and how (Options), what came of it (Result), and the contract that the
// back ends record/capture/ebpf and record/capture/ptrace keep. Both drive their work from the
// operation table and write the same records for the same program. (record/capture/fusefs
// records a directory and no program; its package page says what of this it keeps.)
//
// # The contract
//
// A back end starts the command, follows every process and thread that it makes,
// and writes into a trace.StreamWriter:
//
//   - before the command's first event: a RecStart (working directory, umask) and
//     a RecFile for each descriptor that the command inherits;
//   - a RecTask before a thread's first record and after each call that changed
//     what it says (Spec.Identity);
//   - a RecFork when a thread is made, before the first record of the child, and a
//     RecExit when one ends;
//   - a RecCall for each system call of a followed thread, including those that
//     the operation table does not know (Op 0). A call that never returns (exit_group, a
//     successful execve by another thread of the process) has CallInterrupted or,
//     for Spec.NoReturn, an Exit equal to its Enter. With eBPF it says how long its
//     thread waited for a processor (CallDelays); accesses to mapped files and requests
//     do not.
//   - memory as Pieces, one or more per argument, as the row says: AtEntry pieces
//     in a RecEnter before the call; the others in the RecCall, or, when they are
//     larger than one record should be, in RecData records after it (CallMore,
//     DataLast), matched by thread and Enter. A piece that could not be read is
//     present with PieceMissing: no byte is silently absent. Vectors have one
//     piece with PieceShape (the iovec array) and the bytes of all elements as one
//     sequence. Argument vectors are joined with NUL bytes.
//   - with a call, the objects of its descriptors, those in its memory included
//     (event.MemoryArg): the two of pipe and socketpair, those that a message passes.
//     At most event.MaxPassed are recorded.
//   - memory that a call overwrites (AtBoth, Spec.Offer) also as it was before, as
//     PartBefore: in a RecEnter, or, for Offer, in the RecCall if it succeeded.
//   - 32-bit calls with the rows of event.Spec32, and their own numbers and arguments.
//   - a RecCall for each request to io_uring and of Linux AIO, of the
//     thread that submitted it, from its submission to its completion, whoever sees
//     that; with the head as a piece of event.RequestArg. AtEntry pieces are in a
//     RecEnter whose Op is the request's, and whose Enter is unique among the
//     thread's requests. One that was not seen to end has CallInterrupted, and the
//     content that it was to write.
//   - for Spec.Hold operations that moved bytes, those bytes as pieces whose Arg
//     is the source descriptor's argument.
//
// The package knows nothing of tapes, models or replay.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package capture

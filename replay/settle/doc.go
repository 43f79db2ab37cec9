// Package settle puts the events of a tape into an order that explains their results.
//
// A tape holds events in the order of their returns. Where calls of two threads
// overlapped, that need not be the order in which they took effect: an open that
// returned after an unlink of the same name may have come before it.
//
//	tape ─▶ Stage ─▶ planner
//
// The order that a Stage gives
//
//   - respects real time: a call that had returned when another was made comes before
//     it, and so do the calls of one thread;
//   - explains what the calls returned, wherever some such order does: each gets, from a
//     small model of the files that is done call by call, the errno, sizes, counts and
//     identities that were recorded;
//   - is the tape's otherwise. Events move to an earlier place only, and only past
//     events that they overlap with.
//
// What no order explains has a Doubt.
//
// # How
//
// Events are looked at in windows. Calls that overlap and concern the same piece of
// state (a cell), which one of them changes, race for it. All calls of the window
// that concern cells which are raced for make up components, and for each the
// orders that real time allows are searched depth first, the tape's first. Orders of
// different components fit together whatever they are (locality: Herlihy and Wing,
// Linearizability, TOPLAS 1990). All others keep their places.
//
// The model knows names (absent, or which file), what is in directories, symbolic
// links, sizes, numbers of links, permissions, extended attributes, file positions and
// locks, as far as the trace told; what is unknown may be anything until a call tells.
// Content is compared where reads and writes of the same bytes overlapped: a read saw what
// was written last. A listing is compared with the names that calls named, the last 256 of
// its directory: what it had was there, and if it had all, what it did not have was not.
// The size that a capture found when a call returned is a look of its own behind the call.
// Times are not followed.
//
// Of locks it is known who holds which range, of flock and of fcntl (lockTable). Nobody is
// taken to have one in the beginning. A close may be the last of its open file, and the end
// of a process ends its locks a moment later: after them a lock may be held or not.
//
// Some calls take effect in more than one step. An open with O_TRUNC and a link look their
// file up before they empty it, or make the name: where nothing else explains the results
// they are taken apart (steps.go), and the stage gives an open without O_TRUNC and an
// ftruncate, or a link by another name of the file. An open with O_CREAT follows a link
// before it makes a file, stat looks a name up before the file's attributes, a long write
// makes the file longer page by page, and a link fails if its file has lost all names
// since: who saw such a thing has a Doubt.
//
// # Bounds
//
// An event is given when a quarter of a window has been seen behind it. If its result
// contradicts what is known, a call may explain it that took effect before and has not
// returned: as long as a thread has not been seen since, the window grows, up to
// Options.MaxWindow events. A call that ends later than that keeps the place of its
// return. Searches have a budget, after which a result counts as unexplained. What is
// known of more than 131,072 names or files is forgotten.
//
// The package is pure: it sees events and, through Options.Content, the bytes that they
// moved.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package settle

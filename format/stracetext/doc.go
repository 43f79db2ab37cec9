// Package stracetext writes events for people and for other programs: as lines
// like those of strace(1), as one JSON object per line, and as CSV.
//
//	event.Event ─▶ Printer.Append      1234 0.000123 openat(AT_FDCWD, "a", O_RDONLY) = 3</d/a> <0.000012>
//	            ─▶ Printer.AppendJSON  {"seq":7,"op":"openat",…}
//	            ─▶ Printer.AppendCSV   7,0,1234,…
//
// Everything about a call's arguments comes from the event catalogue; the package
// adds the layouts of kernel structures on each architecture (layout.go) and the
// few calls whose arguments mean something else depending on each other
// (special.go). The field names of JSON and CSV are documented in docs/print.md and
// only ever added to.
//
// The package reads no tapes: content comes through Options.Content.
package stracetext

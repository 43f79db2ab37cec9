// SPDX-License-Identifier: Apache-2.0

package anon

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// rare lists the extensions of few files, the rarest first.
func (s *Survey) rare(extensions map[string]uint64) {
	for ext, n := range extensions {
		if n < RareBelow {
			s.Rare = append(s.Rare, Rare{ext, n})
		}
	}
	slices.SortFunc(s.Rare, func(a, b Rare) int {
		return cmp.Or(cmp.Compare(a.Files, b.Files), strings.Compare(a.Extension, b.Extension))
	})
	s.Rare = s.Rare[:min(len(s.Rare), maxRare)]
}

// Text writes the survey for people.
func (s *Survey) Text(w io.Writer) error {
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s %s\n", what, fmt.Sprintf(format, args...))
	}
	b.WriteString("what still tells things apart:\n")
	if len(s.Opened) > 0 {
		line("as recorded", "%s", strings.Join(s.Opened, ", "))
	}
	for _, k := range s.Kernels {
		line("kernel", "%q", k)
	}
	line("files", "%d: %s by size; %s by size, depth, length of the name and links; %s by bytes read and written",
		s.Files, &s.BySize, &s.ByShape, &s.ByUse)
	if s.Extensions.Groups > 0 {
		var few []string
		for _, r := range s.Rare[:min(len(s.Rare), 10)] {
			few = append(few, fmt.Sprintf("%q", r.Extension))
		}
		line("extensions", "%d, %s: %s", s.Extensions.Groups, &s.Extensions, strings.Join(few, " "))
	}
	line("processes", "%d: %s by the number of their calls; %d users", s.Processes, &s.ByCalls, s.Users)
	line("times", "%v in all; %d of %d durations occur once", time.Duration(s.DurationNS), s.Distinct, s.Calls)
	switch {
	case s.ChunksEqual:
		line("content", "%s; equal chunks, and their sizes, can be seen", cmp.Or(string(s.Content), "as recorded"))
	case s.Content != "":
		line("content", "%s; sizes can be seen", s.Content)
	}
	if s.Truncated {
		line("not all", "the tape has more than was counted")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (g *Groups) String() string {
	return fmt.Sprintf("%d alone, %d in groups below %d", g.Alone, g.Few, RareBelow)
}

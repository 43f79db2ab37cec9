// SPDX-License-Identifier: Apache-2.0

package predicate

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// words is what a text is compared with: it fits if it fits one of them.
type words struct {
	any      bool // every text fits
	equal    map[string]bool
	prefixes []string
	suffixes []string
	within   []string // the text contains them
	under    []string // directories: themselves and what is below
	globs    []glob
	regexps  []*regexp.Regexp
}

// joinWords returns what fits one of several tests.
func joinWords(tests []*test) *words {
	j := &words{}
	for _, t := range tests {
		w := t.words
		if j.equal == nil && w.equal != nil {
			j.equal = map[string]bool{}
		}
		maps.Copy(j.equal, w.equal)
		j.prefixes = append(j.prefixes, w.prefixes...)
		j.suffixes = append(j.suffixes, w.suffixes...)
		j.within = append(j.within, w.within...)
		j.under = append(j.under, w.under...)
		j.globs = append(j.globs, w.globs...)
		j.regexps = append(j.regexps, w.regexps...)
	}
	once := func(list *[]string) {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	once(&j.prefixes)
	once(&j.suffixes)
	once(&j.within)
	once(&j.under)
	slices.SortFunc(j.globs, func(a, b glob) int { return strings.Compare(a.text, b.text) })
	j.globs = slices.CompactFunc(j.globs, func(a, b glob) bool { return a.text == b.text })
	slices.SortFunc(j.regexps, func(a, b *regexp.Regexp) int { return strings.Compare(a.String(), b.String()) })
	j.regexps = slices.CompactFunc(j.regexps, func(a, b *regexp.Regexp) bool { return a.String() == b.String() })
	return j
}

func (w *words) fits(s string) bool {
	if w.any || w.equal[s] {
		return true
	}
	for _, p := range w.prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	for _, p := range w.suffixes {
		if strings.HasSuffix(s, p) {
			return true
		}
	}
	for _, p := range w.under {
		if strings.HasPrefix(s, p) && (len(s) == len(p) || s[len(p)] == '/' || p == "/") {
			return true
		}
	}
	for _, p := range w.within {
		if strings.Contains(s, p) {
			return true
		}
	}
	for i := range w.globs {
		if w.globs[i].fits(s) {
			return true
		}
	}
	for _, r := range w.regexps {
		if r.MatchString(s) {
			return true
		}
	}
	return false
}

// cost is about how many ns a comparison takes, but for looking up the text.
func (w *words) cost() int {
	n := 4 * (len(w.prefixes) + len(w.suffixes) + len(w.under))
	if len(w.equal) > 0 {
		n += 10
	}
	return min(n+15*len(w.within)+30*len(w.globs)+100*len(w.regexps), 1000)
}

// costly reports whether remembering the result for a text is cheaper than finding it.
func (w *words) costly() bool { return !w.any && w.cost() > 25 }

func (w *words) describe(name string) string {
	if w.any {
		return "has a " + name
	}
	var parts []string
	add := func(rel string, list []string) {
		if len(list) == 0 {
			return
		}
		parts = append(parts, name+" "+rel+" "+braced(list))
	}
	quoted := func(list []string) []string {
		var q []string
		for _, s := range list {
			q = append(q, Quote(s))
		}
		return q
	}
	if equal := quoted(slices.Sorted(maps.Keys(w.equal))); len(equal) == 1 {
		add("=", equal)
	} else {
		add("in", equal)
	}
	add("startsWith", quoted(w.prefixes))
	add("endsWith", quoted(w.suffixes))
	add("contains", quoted(w.within))
	add("under", quoted(w.under))
	var globs, regexps []string
	for i := range w.globs {
		globs = append(globs, Quote(w.globs[i].text))
	}
	for _, r := range w.regexps {
		regexps = append(regexps, "/"+strings.ReplaceAll(r.String(), "/", `\/`)+"/")
	}
	add("glob", globs)
	add("matches", regexps)
	return strings.Join(parts, " or ")
}

// glob is a pattern for names: as in path.Match, but "**" fits slashes too. One without a
// slash is for the last part of a name alone. One with a slash that fits a directory fits
// everything below it; if it does not begin with the slash, it may begin at each part of an
// absolute name: otherwise it could fit none.
type glob struct {
	text  string
	parts []string // between the slashes; nil if there is none
	deep  []string // the same for absolute names
}

func newGlob(text string) (glob, error) {
	if _, err := path.Match(text, ""); err != nil {
		return glob{}, err
	}
	g := glob{text: text}
	if strings.Contains(text, "/") {
		g.parts = strings.Split(text, "/")
		if g.deep = g.parts; g.parts[0] != "" {
			g.deep = append([]string{"**"}, g.parts...)
		}
	}
	return g, nil
}

func (g *glob) fits(name string) bool {
	if g.parts == nil {
		ok, _ := path.Match(g.text, lastPart(name))
		return ok
	}
	if strings.HasPrefix(name, "/") {
		return fitParts(g.deep, name)
	}
	return fitParts(g.parts, name)
}

// lastPart returns what stands behind the last slash of a name.
func lastPart(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

// fitParts compares a pattern with a name, part by part. Only the last "**" has to be
// tried again, so the work is at most the product of both lengths.
func fitParts(pattern []string, name string) bool {
	more := true // there is a part of the name left
	var again []string
	var from string
	retry := false
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			again, from, retry = pattern[1:], name, more
			pattern = pattern[1:]
			continue
		}
		if more {
			var part string
			rest, left := "", false
			part, rest, left = strings.Cut(name, "/")
			if ok, _ := path.Match(pattern[0], part); ok {
				pattern, name, more = pattern[1:], rest, left
				continue
			}
		}
		if !retry {
			return false
		}
		_, from, retry = strings.Cut(from, "/")
		pattern, name, more = again, from, retry
	}
	return true
}

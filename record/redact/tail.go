// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"regexp"
	"regexp/syntax"
)

// minTail is how many bytes at the end of a text count as the beginning of a secret, if nothing
// in the pattern stands before the secret.
const minTail = 4

// tails returns the parts at the end of a text that can be the beginning of a secret: what comes
// next may complete it, when this text is on a disk already.
func (p *Patterns) tails(spans []span, text []byte) []span {
	skipped := max(len(text)-window, 0)
	end := text[skipped:]
	lower := bytes.ToLower(end)
	for i := range p.list {
		x := &p.list[i]
		if x.tail == nil || !x.needed(lower) {
			continue
		}
		m := x.tail.FindSubmatchIndex(end)
		for g := 2; g < len(m); g += 2 {
			if m[g] < 0 || m[g] == m[g+1] || m[g] == m[0] && m[g+1]-m[g] < minTail {
				continue
			}
			spans = append(spans, span{m[g] + skipped, m[g+1] + skipped})
		}
	}
	return spans
}

// tailOf returns an expression for the ends of texts that can be the beginning of a match of an
// expression, and have all that stands before the secret. Its groups are the beginning of the
// secret. It is nil if none can be made.
func tailOf(expr string) *regexp.Regexp {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil
	}
	if !captures(re) {
		re = capture(re)
	}
	end := &syntax.Regexp{Op: syntax.OpEndText}
	tail, err := regexp.Compile(concat(inSecret(re), end).String())
	if err != nil {
		return nil // it became too large
	}
	return tail
}

func captures(re *syntax.Regexp) bool {
	if re.Op == syntax.OpCapture {
		return true
	}
	for _, sub := range re.Sub {
		if captures(sub) {
			return true
		}
	}
	return false
}

func concat(list ...*syntax.Regexp) *syntax.Regexp {
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: list, Flags: syntax.Perl}
}

func either(list ...*syntax.Regexp) *syntax.Regexp {
	return &syntax.Regexp{Op: syntax.OpAlternate, Sub: list, Flags: syntax.Perl}
}

func capture(re *syntax.Regexp) *syntax.Regexp {
	return &syntax.Regexp{Op: syntax.OpCapture, Sub: []*syntax.Regexp{re}, Flags: syntax.Perl}
}

func repeated(re *syntax.Regexp, limit int) *syntax.Regexp {
	return &syntax.Regexp{Op: syntax.OpRepeat, Sub: []*syntax.Regexp{re}, Max: limit, Flags: syntax.Perl}
}

func empty() *syntax.Regexp { return &syntax.Regexp{Op: syntax.OpEmptyMatch} }

// limitOf returns how often an expression with one operand may repeat it, -1 for no limit.
func limitOf(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpStar, syntax.OpPlus:
		return -1
	case syntax.OpQuest:
		return 1
	}
	return re.Max
}

// beginning matches all beginnings of what an expression matches, the longer ones first.
func beginning(re *syntax.Regexp) *syntax.Regexp {
	switch re.Op {
	case syntax.OpLiteral:
		b := empty()
		for i := len(re.Rune) - 1; i >= 0; i-- {
			one := &syntax.Regexp{Op: syntax.OpLiteral, Rune: re.Rune[i : i+1], Flags: re.Flags}
			b = repeated(concat(one, b), 1)
		}
		return b
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return repeated(re, 1)
	case syntax.OpCapture:
		return beginning(re.Sub[0])
	case syntax.OpConcat:
		b := empty()
		for i := len(re.Sub) - 1; i >= 0; i-- {
			b = either(concat(re.Sub[i], b), beginning(re.Sub[i]))
		}
		return b
	case syntax.OpAlternate:
		var list []*syntax.Regexp
		for _, sub := range re.Sub {
			list = append(list, beginning(sub))
		}
		return either(list...)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		sub := re.Sub[0]
		switch sub.Op {
		case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
			return repeated(sub, limitOf(re))
		}
		return concat(repeated(sub, limitOf(re)), beginning(sub))
	}
	return empty()
}

// inSecret matches the beginnings that end in a group or behind one. Its groups are those.
func inSecret(re *syntax.Regexp) *syntax.Regexp {
	switch re.Op {
	case syntax.OpCapture:
		return capture(beginning(re.Sub[0]))
	case syntax.OpConcat:
		var list []*syntax.Regexp
		for i, sub := range re.Sub {
			if !captures(sub) {
				continue
			}
			before := concat(re.Sub[:i:i]...)
			list = append(list, concat(before, inSecret(sub)))
			if i+1 < len(re.Sub) {
				list = append(list, concat(before, sub, beginning(concat(re.Sub[i+1:]...))))
			}
		}
		return either(list...)
	case syntax.OpAlternate:
		var list []*syntax.Regexp
		for _, sub := range re.Sub {
			if captures(sub) {
				list = append(list, inSecret(sub))
			}
		}
		return either(list...)
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		return concat(repeated(re.Sub[0], limitOf(re)), inSecret(re.Sub[0]))
	}
	return empty()
}

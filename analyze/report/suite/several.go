// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"slices"

	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/trace"
)

// CollectAll computes the sections of several tapes: the findings in the data that went from
// one to another, then a part with the other sections of each. Of one tape it is Collect.
func CollectAll(ctx context.Context, tapes []*trace.Tape, o *Options) (p *page.Page, damaged uint64, err error) {
	if len(tapes) == 1 {
		return Collect(ctx, tapes[0], o)
	}
	own := *o
	if own.Sections == nil {
		own.Sections = IDs()
	}
	asked := slices.Contains(own.Sections, "findings")
	own.Sections = withoutFindings(own.Sections)
	before := uint64(0) // events of the tapes that are done
	if o.Progress != nil {
		own.Progress = func(done uint64) { o.Progress(before + done) }
	}
	p = &page.Page{}
	if asked {
		p.Sections = append(p.Sections, findingsOf(ctx, tapes, o))
	}
	for _, t := range tapes {
		if p.Title != "" {
			p.Title += " · "
		}
		p.Title += TapeName(t)
		if len(own.Sections) == 0 {
			continue
		}
		one, bad, err := Collect(ctx, t, &own)
		if err != nil {
			return nil, 0, err
		}
		damaged += bad
		before += t.Manifest().Counts.Events
		p.Parts = append(p.Parts, page.Part{Name: TapeName(t) + ": " + one.Title, Page: one})
	}
	return p, damaged, nil
}

// TapeName is what a tape is called among others: its name, and that of its host.
func TapeName(t *trace.Tape) string {
	host := t.Host(0).Host
	if host == "" || host == t.Name() {
		return t.Name()
	}
	return t.Name() + " (" + host + ")"
}

// OwnIDs returns the IDs of the sections that are of one tape, also where there are several.
func OwnIDs() []string { return withoutFindings(IDs()) }

func withoutFindings(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == "findings" })
}

// AllFindings returns a page with the findings of several tapes alone.
func AllFindings(ctx context.Context, tapes []*trace.Tape) *page.Page {
	return &page.Page{Sections: []page.Section{findingsOf(ctx, tapes, &Options{})}}
}

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/iotape/iotape/analyze/report"
	"github.com/iotape/iotape/analyze/report/page"
	"github.com/iotape/iotape/analyze/report/suite"
	"github.com/iotape/iotape/format/stracetext"
	"github.com/iotape/iotape/trace"
)

// Sections computes sections of a tape.
func (c *Console) Sections(ctx context.Context, tapes []*trace.Tape,
	o *suite.Options) (p *page.Page, damaged uint64, err error) {
	progress := c.Progress(report.Count)
	defer progress.Done()
	o.CallName = stracetext.CallName
	total := int64(0)
	for _, t := range tapes {
		total += int64(t.Manifest().Counts.Events)
	}
	o.Progress = func(done uint64) { progress.Update("reading", int64(done), total) }
	return suite.CollectAll(ctx, tapes, o)
}

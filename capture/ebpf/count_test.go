package ebpf

import (
	"testing"

	"iotape/aggregate"
	"iotape/capture"
	"iotape/event"
)

func counted(t testing.TB, o *capture.Options, co *CountOptions) (*aggregate.Table, *capture.Result) {
	t.Helper()
	need(t)
	all := aggregate.NewTable(co.By, 0)
	res, err := Count(t.Context(), o, co, func(r *aggregate.ReadOut) error {
		all.Merge(r.Table)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, res
}

func TestCountDD(t *testing.T) {
	all, res := counted(t, &capture.Options{Command: []string{"dd", "if=/dev/zero", "of=/dev/null", "bs=4k", "count=1000"}}, &CountOptions{By: aggregate.ByOp | aggregate.ByProcess | aggregate.ByExtension | aggregate.ByUser})
	t.Logf("%+v", res)
	for _, r := range all.Sorted(aggregate.OrderCalls) {
		t.Logf("%+v %v %d calls %d failed %d unf %d read %d written p50 %d", r.Key, r.Key.Op, r.Calls, r.Failed, r.Unfinished, r.Read, r.Written, r.Quantile(0.5))
	}
	if c := all.Row(aggregate.Key{Op: event.OpWrite}); c == nil {
		t.Log("no")
	}
}

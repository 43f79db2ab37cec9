package accuracy

import (
	"strings"
	"testing"

	"iotape/internal/testenv"
)

// TestSmallStudy makes a study that is too small to say anything, but runs everything.
func TestSmallStudy(t *testing.T) {
	testenv.Short(t, "builds programs and runs them")
	testenv.NeedBPF(t)
	testenv.NeedProgram(t, "gcc")
	r, err := Run(t.Context(), Options{
		Iotape: testenv.Iotape(t), Dir: t.TempDir(), Memory: t.TempDir(), Apps: []string{"pseudosyncdat"}, Stores: []string{"disk", "arm"},
		Modes: []string{"causal"}, Sync: "futex", Ranks: 3, Scale: 0.05, Repeat: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows)+len(r.Skipped) != 2 {
		t.Errorf("%d rows, skipped %v", len(r.Rows), r.Skipped)
	}
	for _, row := range r.Rows {
		if row.AppNS <= 0 || row.ReplayNS["causal"] <= 0 || len(row.Failed) > 0 {
			t.Errorf("%+v", row)
		}
	}
}

func TestTable(t *testing.T) {
	r := &Report{Traced: "disk", Sync: "pipe", Ranks: 4, Skipped: map[string]string{"arm": "no fuse"}, Rows: []Row{
		{App: "pseudo", Store: "disk", AppNS: 1e9, Error: map[string]float64{"afap": 0.5, "causal": 0.5}},
		{App: "pseudo", Store: "throttled", AppNS: 2e9, Error: map[string]float64{"afap": -0.5, "causal": 0.01}},
		{App: "pseudo", Store: "channels", AppNS: 3e9, Error: map[string]float64{"afap": 0.25}, Failed: map[string]string{"causal": "it hung"}},
	}}
	var b strings.Builder
	if err := r.Text(&b); err != nil {
		t.Fatal(err)
	}
	const want = `recorded on disk with 4 ranks that wait by pipe; error of the replay's time against the application's

application  storage    runs for     afap   causal
pseudo       disk         1.00 s  +50.0 %  +50.0 %
pseudo       throttled    2.00 s  -50.0 %   +1.0 %
pseudo       channels     3.00 s  +25.0 %        –
mean         others                37.5 %    1.0 %
worst        others                50.0 %    1.0 %
causal of pseudo on channels: it hung
no arm: no fuse
`
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// SPDX-License-Identifier: Apache-2.0

package slice

import (
	"slices"
	"strings"
	"testing"
)

func TestPickFilters(t *testing.T) {
	for _, tt := range []struct {
		name string
		pick Pick
		want []string
		err  string
	}{
		{name: "all"},
		{name: "pids", pick: Pick{PIDs: []uint{1, 22}}, want: []string{"pid in {1, 22}"}},
		{name: "descendants", pick: Pick{PIDs: []uint{1, 22}, Tree: true},
			want: []string{"descendant of 1 or descendant of 22"}},
		{
			name: "calls", pick: Pick{Paths: []string{"*-wal"}, Ops: []string{"read"},
				Classes: []string{"data", "sync"}},
			want: []string{`path glob {"*-wal"}`, "op in {read}", "class in {data, sync}"},
		},
		{name: "nobody's descendants", pick: Pick{Tree: true}, err: "--tree is for the processes of --pid"},
		{name: "broken glob", pick: Pick{Paths: []string{"["}}, err: "--path [: syntax error in pattern"},
		{name: "unknown call", pick: Pick{Ops: []string{"reed"}}, err: "--op reed: there is no such call"},
		{name: "unknown class", pick: Pick{Classes: []string{"dat"}}, err: "--class dat: there is no such class"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.pick.Filters()
			if tt.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("Filters() = %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

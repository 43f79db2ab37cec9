package ebpf

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
)

func TestZZ(t *testing.T) {
	spec, _ := loadIotape()
	dropMissing(spec)
	spec.Maps[iotapeMapWorks].MaxEntries = 2
	for _, name := range strings.Fields(os.Getenv("ZZ")) {
		s := spec.Copy()
		for n := range s.Programs {
			if n != name {
				delete(s.Programs, n)
			}
		}
		start := time.Now()
		c, err := ebpf.NewCollection(s)
		if err != nil {
			t.Logf("%s: %.200v", name, err)
			continue
		}
		info, _ := c.Programs[name].Info()
		n, _ := info.VerifiedInstructions()
		t.Logf("%-24s %8d %v", name, n, time.Since(start))
		c.Close()
	}
}

// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// makeGroups makes control groups below one of the test's, which they are named after as systemd and others do.
func makeGroups(t *testing.T, paths ...string) (root string) {
	t.Helper()
	root = testenv.Cgroup(t)
	for _, path := range paths {
		at := root
		for part := range strings.SplitSeq(path, "/") {
			at = filepath.Join(at, part)
			dir := at
			if err := os.Mkdir(dir, 0o755); err != nil && !os.IsExist(err) {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Remove(dir) })
		}
	}
	return root
}

// TestFindUnit finds the control groups of units, and says what is wrong.
func TestFindUnit(t *testing.T) {
	own := fmt.Sprintf("iotape-%d", os.Getpid())
	root := makeGroups(t, "system.slice/"+own+"-a.service/sub", "user.slice/user@7.service/app.slice/"+own+"-b.service",
		"user.slice/user@7.service/app.slice/"+own+"-c.scope", "user.slice/user@8.service/app.slice/"+own+"-c.scope")
	for _, tt := range []struct{ name, want, err string }{
		{own + "-a.service", "system.slice/" + own + "-a.service", ""},
		{own + "-a", "system.slice/" + own + "-a.service", ""},
		{own + "-b", "user.slice/user@7.service/app.slice/" + own + "-b.service", ""},
		{own + "-c.scope", "", "2 units " + own + "-c.scope run"},
		{own, "", "no unit " + own + ".service runs"},
		{"a/b", "", "no name of a unit"},
		{"", "", "no name of a unit"},
	} {
		got, err := FindUnit(tt.name)
		switch {
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%s: %s, %v; want an error with %q", tt.name, got, err, tt.err)
		case tt.err == "" && (err != nil || got != filepath.Join(root, tt.want)):
			t.Errorf("%s: %s, %v; want %s", tt.name, got, err, filepath.Join(root, tt.want))
		}
	}
}

// TestFindContainer finds the control groups of containers by IDs and by the names that engines keep.
func TestFindContainer(t *testing.T) {
	ids := map[string]string{}
	for name, first := range map[string]string{"docker": "aaaa01", "podman": "aaaa02", "cri": "aaaa03",
		"stopped": "aaaa04"} {
		ids[name] = first + fmt.Sprintf("%058x", os.Getpid())
	}
	root := makeGroups(t, "docker-"+ids["docker"]+".scope", "libpod-"+ids["podman"]+".scope/container",
		"libpod-conmon-"+ids["podman"]+".scope",
		"cri-containerd-"+ids["cri"]+".scope")
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("docker/1/config.json", `{"ID":"`+ids["docker"]+`","Name":"/web"}`)
	write("docker/2/config.json", `{"ID":"`+ids["stopped"]+`","Name":"/old"}`)
	write("docker/3/config.json", `{"ID":`)
	write("podman.json", `[{"id":"x","names":[]},{"id":"`+ids["podman"]+`","names":["db","base"]}]`)
	e := &engines{docker: filepath.Join(dir, "docker/*/config.json"),
		podman: []string{filepath.Join(dir, "podman.json")}}
	for _, tt := range []struct{ name, want, title, err string }{
		{ids["docker"], "docker-" + ids["docker"] + ".scope", ids["docker"][:12], ""},
		{"aaaa03", "cri-containerd-" + ids["cri"] + ".scope", "aaaa03", ""},
		{"web", "docker-" + ids["docker"] + ".scope", "web", ""},
		{"db", "libpod-" + ids["podman"] + ".scope", "db", ""},
		{"old", "", "", "container old (ID aaaa04000000) does not run"},
		{"aaaa0", "", "", "no container aaaa0 runs"},
		{"nothing", "", "", "no container nothing runs"},
		{"../x", "", "", "neither the ID nor the name"},
		{"--all", "", "", "neither the ID nor the name"},
	} {
		got, title, err := e.find(tt.name)
		switch {
		case tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)):
			t.Errorf("%s: %s, %v; want an error with %q", tt.name, got, err, tt.err)
		case tt.err == "" && (err != nil || got != filepath.Join(root, tt.want) || title != tt.title):
			t.Errorf("%s: %s, called %s, %v; want %s, called %s", tt.name, got, title, err,
				filepath.Join(root, tt.want), tt.title)
		}
	}
}

// TestSlices finds where systemd makes the control groups of units that do not run.
func TestSlices(t *testing.T) {
	for slice, want := range map[string]string{
		"system.slice": "system.slice", "a-b.slice": "a.slice/a-b.slice", "a-b-c.slice": "a.slice/a-b.slice/a-b-c.slice",
		"system-getty.slice": "system.slice/system-getty.slice",
	} {
		if got := sliceDir(slice); got != want {
			t.Errorf("%s is in %s; want %s", slice, got, want)
		}
	}
}

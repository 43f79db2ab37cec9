// SPDX-License-Identifier: Apache-2.0

package session

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/iotape/iotape/event/facts"
	"github.com/iotape/iotape/internal/hint"
)

// engines are where the names of containers are looked up. The paths are patterns of filepath.Glob.
type engines struct {
	docker   string   // a file for each container
	podman   []string // files with lists of containers
	programs []string // that are asked if the files do not know the name
}

// hostEngines returns those of this machine.
func hostEngines() *engines {
	const storage = "containers/storage/*-containers/*containers.json" // of each driver; volatile- for run --rm
	return &engines{
		docker:   "/var/lib/docker/containers/*/config.v2.json",
		podman:   []string{"/var/lib/" + storage, "/home/*/.local/share/" + storage, "/root/.local/share/" + storage},
		programs: []string{"docker", "podman"},
	}
}

// FindContainer returns the control group of a container that runs, and what to call it: by the container's ID, the
// first digits of that, or its name with Docker, Podman, LXC or systemd-nspawn.
func FindContainer(name string) (dir, title string, err error) {
	return hostEngines().find(name)
}

const minDigits = 6 // of an ID that is not given whole

func (e *engines) find(name string) (dir, title string, err error) {
	if name == "" || strings.ContainsAny(name, "/\x00") || name[0] == '-' {
		return "", "", fmt.Errorf("%q is neither the ID nor the name of a container", name)
	}
	ids := e.ids(name)
	isID := len(name) >= minDigits && strings.Trim(name, "0123456789abcdef") == ""
	found, err := cgroups(func(path string) bool {
		id := facts.Container(path)
		return id != "" && (id == name || slices.Contains(ids, id) || isID && strings.HasPrefix(id, name))
	})
	switch {
	case err != nil:
		return "", "", err
	case len(found) == 0 && len(ids) > 0:
		return "", "", fmt.Errorf("container %s (ID %s) does not run: no control group has its ID", name,
			facts.ShortContainer(ids[0]))
	case len(found) == 0:
		return "", "", hint.With(fmt.Errorf("no container %s runs: no control group has it for its ID, and Docker and "+
			"Podman know no such name", name), "--cgroup takes the path of a control group")
	case len(found) > 1:
		return "", "", hint.With(fmt.Errorf("%d containers fit %s, such as those in %s and %s", len(found), name,
			found[0], found[1]), "give more of the ID")
	}
	return found[0], facts.ShortContainer(name), nil
}

// ids returns the IDs of the containers that have a name.
func (e *engines) ids(name string) (list []string) {
	files, _ := filepath.Glob(e.docker) // a bad pattern is not possible
	for _, file := range files {
		var c struct{ ID, Name string }
		if readJSON(file, &c) && strings.TrimPrefix(c.Name, "/") == name {
			list = append(list, c.ID)
		}
	}
	for _, pattern := range e.podman {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			var all []struct {
				ID    string
				Names []string
			}
			if !readJSON(file, &all) {
				continue
			}
			for _, c := range all {
				if slices.Contains(c.Names, name) {
					list = append(list, c.ID)
				}
			}
		}
	}
	for _, program := range e.programs {
		if len(list) > 0 {
			break
		}
		ctx, cancel := context.WithTimeout(context.Background(), askPatience)
		out, err := exec.CommandContext(ctx, program, "inspect", "--type", "container", "--format", "{{.Id}}",
			name).Output()
		cancel()
		if id := string(bytes.TrimSpace(out)); err == nil && facts.Container("/"+id) == id && id != "" {
			list = append(list, id)
		}
	}
	slices.SortFunc(list, cmp.Compare[string])
	return slices.Compact(list)
}

// maxEngineFile bounds the files of engines that are read, in bytes.
const maxEngineFile = 64 << 20

// readJSON reads a file, and reports whether it could.
func readJSON(name string, v any) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	return json.NewDecoder(io.LimitReader(f, maxEngineFile)).Decode(v) == nil
}

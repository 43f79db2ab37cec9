// SPDX-License-Identifier: Apache-2.0

package open

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/iotape/iotape/format/all"
	"github.com/iotape/iotape/record/sealing"
	"github.com/iotape/iotape/trace"
	"github.com/iotape/iotape/transform/slice"
)

// Recorded is Any, but for an unsealed recording with a filter: of that it gives what the
// filter picks, as a recorder does only a part of it. program is the name and version for
// the manifest of such a tape. Errors name the path.
func Recorded(ctx context.Context, path, program string) (*trace.Tape, error) {
	sealed := Sealed(path)
	t, err := Any(ctx, path)
	if err != nil {
		if path == all.StandardInput || strings.Contains(err.Error(), path) {
			return nil, err
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if sealed || t.Host(0).Filter == "" {
		return t, nil
	}
	defer t.Close()
	g, err := sealing.RecordingFilter(t)
	if err != nil {
		return nil, err
	}
	return slice.Fitting(ctx, t, "", g, program)
}

// Sealed reports whether there is a tape at path, which is opened as it is.
func Sealed(path string) bool {
	_, err := os.Stat(filepath.Join(path, trace.ManifestName))
	return err == nil
}

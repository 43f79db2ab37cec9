// SPDX-License-Identifier: Apache-2.0

package interpose

import "github.com/iotape/iotape/record/capture"

const name = "interpose"

// Backend is the back end that records within the recorded processes. The zero value is ready
// to use.
type Backend struct{}

var _ capture.Backend = Backend{}

// Name returns "interpose".
func (Backend) Name() string { return name }

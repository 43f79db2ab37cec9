// SPDX-License-Identifier: Apache-2.0

package replay

import "github.com/iotape/iotape/replay/execute"

// Helper does nothing in an ordinary process. In one that Run has started from this program's
// executable, to make the calls in the confined target, it makes them and does not return. A
// main function that calls Run calls it first.
func Helper() { execute.Stub() }

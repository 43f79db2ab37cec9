// SPDX-License-Identifier: Apache-2.0

package schedule

// pause tells the processor that this loop waits for another thread's store. It takes some ten
// nanoseconds.
func pause()

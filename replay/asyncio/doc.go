// SPDX-License-Identifier: Apache-2.0

// Package asyncio makes single requests through the kernel's asynchronous interfaces, and
// waits for them: io_uring(7) and Linux AIO (io_submit(2)). A replay that repeats
// requests as such uses one of each for every thread.
//
// It knows nothing of events.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package asyncio

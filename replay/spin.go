package replay

// pause tells the processor that this is a loop that waits for another one's store. It
// takes some ten nanoseconds.
func pause()

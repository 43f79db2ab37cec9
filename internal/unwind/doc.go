// SPDX-License-Identifier: Apache-2.0

// Package unwind finds the callers of a stopped thread, and the names of functions.
//
// Walk goes from frame to frame by the call frame information of the ELF files that are mapped
// (.eh_frame, or .debug_frame), and by frame pointers where there is none. It reads memory through an
// interface: of a stopped process, or of a copied part of a stack. A Symbolizer says, later and perhaps
// elsewhere, which function, file and line a position in an ELF file belongs to.
//
// ELF files, mappings and stacks are input of strangers: every length is bounded, and a walk ends
// after a number of frames. Where the callers cannot be found the stack ends, and says why; no frame is
// guessed.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package unwind

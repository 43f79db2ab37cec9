// SPDX-License-Identifier: Apache-2.0

// Package wholefile opens and replaces files in directories that somebody else may have
// made, such as an unpacked tape.
//
// A file is written under a temporary name that cannot be guessed, and gets its own name
// when it is complete. So it is there as a whole or not at all, also after a kill, and a
// link that waits under the temporary name is not followed. What a killed process left is
// removed by the next one that writes the same file: the makers of temporary files hold a
// lock on them (flock(2)).
//
// Files of a program's own, below a directory of which somebody else may have changed parts,
// are opened without following a link on the way (OpenBelow).
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package wholefile

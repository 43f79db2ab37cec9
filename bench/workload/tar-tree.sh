#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tar: archive of a tree of 5,000 files, and the tree back from it.
#
# usage: tar-tree.sh DIR prep|run
set -eu -o pipefail
umask 022
export LC_ALL=C TZ=UTC
cd "$1"

prep() {
	mkdir tree
	for d in {00..49}; do
		mkdir "tree/d$d"
		for f in {00..99}; do
			printf 'file %s of %s %*s\n' "$f" "$d" $((RANDOM % 2000)) . >"tree/d$d/f$f"
		done
	done
	chmod 600 tree/d0[0-4]/f*
	touch -d 2001-02-03T04:05:06.789 tree/d1*/f*
}

run() {
	tar -cf tree.tar tree
	mkdir out
	tar -xf tree.tar -C out
}

"$2"

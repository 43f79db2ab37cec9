#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rsync -a into a new directory, then again after changes, with --delete.
#
# usage: rsync-a.sh DIR prep|run
set -eu -o pipefail
umask 022
export LC_ALL=C TZ=UTC
cd "$1"

prep() {
	mkdir -p src/a/b/c src/empty
	for f in {1..150}; do head -c $((f * 97)) /dev/urandom >"src/a/f$f"; done
	head -c 3000000 /dev/urandom >src/big
	truncate -s 5M src/sparse
	printf x | dd of=src/sparse bs=1 seek=3000000 conv=notrunc status=none
	: >src/a/b/none
	ln -s ../f1 src/a/b/link
	ln -s /nonexistent src/dangling
	ln src/a/f2 src/a/b/c/hard
	mkfifo src/fifo
	chmod 4711 src/a/f3
	chmod 1777 src/empty
	touch -d 1999-12-31T23:59:59.123456789 src/a/f4
	setfattr -n user.note -v "kept" src/a/f5 2>/dev/null || true # where the file system has them
}

run() {
	rsync -a src/ dst/
	echo more >>src/a/f10
	rm src/a/f11
	chmod 600 src/a/f12
	rsync -a --delete src/ dst/
}

"$2"

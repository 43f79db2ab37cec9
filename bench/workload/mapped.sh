#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files that are read and written through memory.
#
# usage: mapped.sh DIR prep|run
set -eu -o pipefail
umask 022
export LC_ALL=C TZ=UTC
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"

prep() {
	gcc -O1 -Wall -pthread -o mapped "$here/src/mapped.c"
	seq 60000 > existing
	seq 100000 160000 > existing2
	truncate -s 262144 existing existing2
}

run() { ./mapped; }

"$2"

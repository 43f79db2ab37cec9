#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files through io_uring: requests of most kinds, chains, fixed files and buffers, a
# thread of the kernel that submits.
#
# usage: uring.sh DIR prep|run
set -eu -o pipefail
umask 022
export LC_ALL=C TZ=UTC
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"

prep() { gcc -O1 -w -o uring "$here/src/uring.c"; }

run() { ./uring; }

"$2"

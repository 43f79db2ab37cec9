#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two processes that pass open files to each other and write through both ends.
#
# usage: threads8.sh DIR prep|run
set -eu -o pipefail
umask 022
export LC_ALL=C TZ=UTC
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"

prep() { gcc -O2 -Wall -o passfds "$here/src/passfds.c"; }

run() { ./passfds; }

"$2"

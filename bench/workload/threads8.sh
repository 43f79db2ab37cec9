#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Eight threads write one file, each at its own positions.
#
# usage: threads8.sh DIR prep|run
set -eu -o pipefail
umask 022
export LC_ALL=C TZ=UTC
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"

prep() { gcc -O2 -Wall -pthread -o threads8 "$here/src/threads8.c"; }

run() { ./threads8 pwrite positioned; }

"$2"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files through Linux AIO: single requests, batches, a thread that reaps what another
# submits.
#
# usage: aio.sh DIR prep|run
set -eu -o pipefail
umask 022
export LC_ALL=C TZ=UTC
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"

prep() { gcc -O1 -w -pthread -o aio "$here/src/aio.c"; }

run() { ./aio; }

"$2"

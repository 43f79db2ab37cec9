#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Calls that fail on purpose, and reads that come short.
#
# usage: failures.sh DIR prep|run
set -eu -o pipefail
umask 022
export LC_ALL=C TZ=UTC
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"

prep() { gcc -O2 -w -o failures "$here/src/failures.c"; }

run() { ./failures; }

"$2"

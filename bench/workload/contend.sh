#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Four threads race for the same names and files.
#
# usage: contend.sh DIR prep|run
set -eu -o pipefail
umask 022
export LC_ALL=C TZ=UTC
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"

prep() { gcc -O1 -w -pthread -o contend "$here/src/contend.c"; }

run() { ./contend; }

"$2"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench-serve.sh [EVENTS]: measures how fast iotape serve answers a zoom, on a synthetic tape
# of EVENTS (10,000,000): the windows alone, in the library, and as a browser gets them, from
# iotape serve over HTTP; and what the index, the order and the reports of it take. Makes the
# tape once, in bin/ (about 400 MB for 10 M events). About 5 minutes on an idle machine.
#
# Exit status 0: the slowest 1 % of windows over HTTP took less than 100 ms; 1: they did
# not; 2: nothing could be measured.
set -eu -o pipefail
cd "$(dirname "$0")/.."
[ -x bin/iotape ] || { echo "bench-serve: bin/iotape is missing: make build" >&2; exit 2; }
events=${1:-10000000}
tape=bin/busy-$events.tape
go test ./scene -run '^$' -bench 'BenchmarkOpen$' -benchtime 1x -timeout 30m -events "$events" -tape "$PWD/$tape" | grep '^Bench'
go test ./scene -run '^$' -bench 'BenchmarkWindow$' -benchtime 500x -timeout 30m -events "$events" -tape "$PWD/$tape" | grep '^Bench'
exec go run ./bench/zoom bin/iotape "$tape"

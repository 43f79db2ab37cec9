#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench-pipe.sh [FLAG...]: measures what layers of a recording cost, one by one and
# together, on PostMark and on a C build with all content recorded; prints a table in
# Markdown, beside the figures of the Tracefs paper. Under 5 minutes on an idle machine.
# The flags are those of bench/run.
set -eu -o pipefail
cd "$(dirname "$0")/.."
[ -x bin/iotape ] || { echo "bench-pipe: bin/iotape is missing: make build" >&2; exit 2; }
command -v postmark >/dev/null || { echo "bench-pipe: postmark is missing: scripts/setup.sh --bench" >&2; exit 2; }
[ -f bin/lua.tar.gz ] || scripts/fetch-lua.sh bin/lua.tar.gz
go build -buildvcs=false -o bin/bench ./bench/run
out=$(mktemp)
trap 'rm -f "$out"' EXIT
printf '%s\n' '<!-- begin: written by make bench -->' '<!-- end: written by make bench -->' >"$out"
ways=layers-none,layers-checksum,layers-zstd,layers-s2,layers-encrypt,layers-all,layers-async
status=0
bin/bench --workloads postmark,make --ways "$ways" --rounds 3 "$@" --markdown "$out" >/dev/null || status=$?
grep -v '^<!--' "$out"
exit "$status"

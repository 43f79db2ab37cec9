#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh [SECONDS [TARGET...]]: fuzzes every parser for so long (60 if not given), two
# at a time. A target is FuzzName or ./package:FuzzName; all if none is given. What is
# found is in the package's testdata/fuzz, to be committed with what mends it.
set -eu -o pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift || true

targets() {
	grep -rnoE '^func (Fuzz[A-Za-z0-9_]+)' --include=*_test.go . |
		sed -E 's|^(.*)/[^/]+:[0-9]+:func (Fuzz.*)$|\1:\2|' | sort
}

# What takes more memory than this is a finding, and not the end of other programs.
ulimit -v 12000000

# Coverage of code with goroutines differs between runs: shrinking an input that is
# new only by chance would take all the time.
one() {
	local log
	log=$(mktemp)
	# A run that is still busy when its time is over can end in "context deadline
	# exceeded" (golang/go#75804): that is no finding, which names its input.
	if go test -run '^$' -fuzz "^${1##*:}\$" -fuzztime "${2}s" -fuzzminimizetime 20x -parallel 1 "${1%:*}" >"$log" 2>&1 ||
		{ grep -q 'context deadline exceeded' "$log" && ! grep -q -e 'Failing input written' -e panic "$log"; }; then
		echo "ok   $1: $(grep -o 'execs: [0-9]*' "$log" | tail -1)"
	else
		echo "FAIL $1"
		cat "$log"
		return 1
	fi
	rm -f "$log"
}
export -f one

targets | { if [ $# -gt 0 ]; then grep -F "$(printf '%s\n' "$@")"; else cat; fi; } |
	xargs -P 2 -I{} bash -c 'one "$1" "$2"' fuzz {} "$seconds"

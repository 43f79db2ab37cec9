#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh [SECONDS [TARGET...]]: fuzzes every parser for so long (60 if not given), two
# packages at a time. A target is FuzzName or ./package:FuzzName; all if none is given. What
# is found is in the package's testdata/fuzz, to be committed with what mends it.
set -eu -o pipefail
cd "$(dirname "$0")/.."
export seconds=${1:-60}
shift || true

targets() {
	grep -rnoE '^func (Fuzz[A-Za-z0-9_]+)' --include=*_test.go . |
		sed -E 's|^(.*)/[^/]+:[0-9]+:func (Fuzz.*)$|\1:\2|' | sort
}

# What takes more memory than this is a finding, and not the end of other programs.
ulimit -v 12000000

corpus=$(go env GOCACHE)/fuzz/$(go list -m)
export corpus

# one PROGRAM PACKAGE TARGET fuzzes one target in the package's directory.
one() {
	local log=$1.log
	# Coverage of code with goroutines differs between runs: shrinking an input that is
	# new only by chance would take all the time.
	# A run that is still busy when its time is over can end in "context deadline
	# exceeded" (golang/go#75804): that is no finding, which names its input.
	if (cd "$2" && "$1" -test.run '^$' -test.fuzz "^$3\$" -test.fuzztime "${seconds}s" -test.fuzzminimizetime 20x \
		-test.parallel 1 -test.timeout 0 -test.fuzzcachedir "$corpus/${2#./}") >"$log" 2>&1 ||
		{ grep -q 'context deadline exceeded' "$log" && ! grep -q -e 'Failing input written' -e panic "$log"; }; then
		echo "ok   $2:$3: $(grep -o 'execs: [0-9]*' "$log" | tail -1)"
	else
		echo "FAIL $2:$3"
		cat "$log"
		return 1
	fi
}

# package PACKAGE TARGET... builds the package's test once, as linking takes longer than
# some seconds of fuzzing.
package() {
	local dir status=0 package=$1
	shift
	dir=$(mktemp -d)
	go test -c -vet=off -ldflags=-w -fuzz . -o "$dir/fuzz.test" "$package"
	for target in "$@"; do
		one "$dir/fuzz.test" "$package" "$target" || status=1
	done
	rm -rf "$dir"
	return $status
}
export -f one package

targets | { if [ $# -gt 0 ]; then grep -F "$(printf '%s\n' "$@")"; else cat; fi; } |
	awk -F: '{of[$1] = of[$1] " " $2} END {for (p in of) print p of[p]}' | sort |
	xargs -P 2 -L 1 bash -c 'set -eu; package "$@"' fuzz

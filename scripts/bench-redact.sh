#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench-redact.sh [ROUNDS]: what record --redact builtin costs, beside the same recording without it, for each back end,
# on a C build (many small files) and on text that goes through a pipe (100 MB, SIZE=N for N times as much). Prints a
# table in Markdown: medians over ROUNDS (5) of the ratios within a round. "recorder" is its processor time without the
# program's. Needs gcc and bin/iotape; with eBPF, root. Nothing is sealed. It works in /dev/shm unless TMPDIR says where.
set -eu -o pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5} size=${SIZE:-1} backends=${BACKENDS:-ebpf ptrace}
iotape=${IOTAPE:-$PWD/bin/iotape}
for need in "$iotape" gcc; do
	command -v "$need" >/dev/null || { echo "bench-redact: $need is missing" >&2; exit 2; }
done
tmp=${TMPDIR:-/dev/shm}
[ -w "$tmp" ] || tmp=/tmp
work=$(mktemp -d "$tmp/bench-redact.XXXXXX")
trap 'rm -rf "$work"' EXIT

cat >"$work/build.sh" <<END
for i in \$(seq $((6 * size))); do
	printf '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint f%d(int n) { return n * %d; }\n' "\$i" "\$i" >f\$i.c
	gcc -O2 -c f\$i.c
done
END
cat >"$work/text.sh" <<END
for i in \$(seq $size); do seq 100000000 111111111; done | head -c $((size * 100))000000 | cat >text
END

# once WORKLOAD BACKEND WAY [ARG...]: appends "elapsed recorder" to its file, in seconds.
once() {
	local dir="$work/run" log="$work/log" to="$work/$1.$2.$3" script="$work/$1.sh" backend=$2 outer TIMEFORMAT='%R %U %S'
	shift 3
	rm -rf "$dir" "$work"/x.tape*
	mkdir "$dir"
	outer=$({ time "$iotape" record --backend "$backend" --seal never -o "$work/x.tape" "$@" -- \
		bash -c 'TIMEFORMAT="%R %U %S"; cd "$1"; time bash "$2"' time "$dir" "$script" 2>"$log"; } 2>&1) || true
	awk -v outer="$outer" '/^[0-9.]+ [0-9.]+ [0-9.]+$/ { split(outer, o, " "); r = o[2] + o[3] - $2 - $3
		print $1, (r > 0.01 ? r : 0.01); found = 1 }
		END { exit !found }' "$log" >>"$to" || { echo "bench-redact: $to failed:" >&2; cat "$log" >&2; exit 1; }
}

median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

for ((round = 0; round < rounds; round++)); do
	for backend in $backends; do
		for workload in build text; do
			once $workload "$backend" plain
			once $workload "$backend" redact --redact builtin
		done
	done
done
echo "$rounds rounds on $(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg) at the end"
echo
echo '| back end | work | elapsed, s | with --redact builtin | recorder, s | with --redact builtin |'
echo '|---|---|--:|--:|--:|--:|'
for backend in $backends; do
	for workload in build text; do
		both=$(paste -d' ' "$work/$workload.$backend.plain" "$work/$workload.$backend.redact")
		printf '| %s | %s | %.2f | × %.2f | %.2f | × %.2f |\n' "$backend" $workload \
			"$(awk '{ print $1 }' <<<"$both" | median)" "$(awk '{ print $3 / $1 }' <<<"$both" | median)" \
			"$(awk '{ print $2 }' <<<"$both" | median)" "$(awk '{ print $4 / $2 }' <<<"$both" | median)"
	done
done

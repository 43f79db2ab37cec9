#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench-aggregate.sh [ROUNDS]: what counting calls in the kernel costs the program, beside a
# recording without content and no tracing, on small calls (loop: pwrite, pread, lseek of
# 100 bytes), PostMark and a C build. Prints a table in Markdown; needs root, postmark, gcc
# and bin/iotape. The ways are interleaved: each figure is the median over ROUNDS (5). CPU is
# user and system time of the program, which the kernel's hooks add to; of small calls it is
# what each call takes more than untraced, in ns. The recorder's own is a column of its own,
# in seconds. Nothing is sealed. It works in memory (/dev/shm), where calls are cheapest and
# tracing them costs most, unless TMPDIR says where. SIZE=N makes the work N times as long.
set -eu -o pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5} size=${SIZE:-1}
iotape=${IOTAPE:-$PWD/bin/iotape}
for need in "$iotape" postmark gcc; do
	command -v "$need" >/dev/null || { echo "bench-aggregate: $need is missing" >&2; exit 2; }
done
tmp=${TMPDIR:-/dev/shm}
[ -w "$tmp" ] || tmp=/tmp
work=$(mktemp -d "$tmp/bench-aggregate.XXXXXX")
trap 'rm -rf "$work"' EXIT

gcc -O2 -o "$work/loop" record/capture/ebpf/testdata/loop.c
calls=$((300000 * size)) # of each of the three
cat >"$work/calls.sh" <<END
"$work/loop" "\$1/file" $calls 100 >/dev/null
END
cat >"$work/postmark.sh" <<END
cd "\$1"
printf 'set location %s\nset number 2000\nset transactions $((12000 * size))\nset subdirectories 20\nset size 500 20000\nset seed 42\nrun\nquit\n' "\$1" | postmark >/dev/null
END
cat >"$work/build.sh" <<END
cd "\$1"
for i in \$(seq $((12 * size))); do
	printf '#include <stdio.h>\n#include <stdlib.h>\nint f%d(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * n; printf("%%d", s); return s; }\n' "\$i" >f\$i.c
	gcc -O2 -c f\$i.c
done
echo 'int main(void) { return 0; }' >main.c
gcc -o all main.c f*.o
END

# once WORKLOAD WAY: appends "elapsed cpu recorder" to its file, in seconds.
once() {
	local dir="$work/run" log="$work/log" t="$work/$1.$2" outer TIMEFORMAT='%R %U %S' trace=()
	rm -rf "$dir" "$work"/x.tape*
	mkdir "$dir"
	case $2 in
	none) ;;
	record) trace=("$iotape" record --backend ebpf --content none --mmap off --seal never -o "$work/x.tape" --) ;;
	op) trace=("$iotape" top --plain --by op --) ;;
	all) trace=("$iotape" top --plain --by op,user,process,latency --) ;;
	extension) trace=("$iotape" top --plain --by op,process,extension --) ;;
	filter) trace=("$iotape" top --plain --by op --filter 'class = sync or latency > 1s' --) ;;
	esac
	local inner=(bash -c 'TIMEFORMAT="%R %U %S"; time bash "$1" "$2" 2>/dev/null' time "$work/$1.sh" "$dir")
	outer=$({ time "${trace[@]}" "${inner[@]}" 2>"$log" >/dev/null; } 2>&1) || true
	awk -v outer="$outer" '/^[0-9.]+ [0-9.]+ [0-9.]+$/ { split(outer, o, " "); print $1, $2 + $3, o[2] + o[3] - $2 - $3; found = 1 }
		END { exit !found }' "$log" >>"$t" || { echo "bench-aggregate: $1 $2 failed:" >&2; cat "$log" >&2; exit 1; }
}

workloads='calls postmark build' ways='none record op all extension filter'
for workload in $workloads; do
	once "$workload" none # warms the caches
	rm "$work/$workload.none"
done
for ((round = 0; round < rounds; round++)); do
	for workload in $workloads; do
		for way in $ways; do once "$workload" "$way"; done
	done
done

median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
columns() { paste -d' ' "$work/$1.none" "$work/$1.$2"; }
ns() { columns calls "$1" | awk -v n="$((3 * calls))" '{ printf "%.0f\n", ($5 - $2) / n * 1e9 }' | median; }
cell() { # WORKLOAD WAY: ratios of elapsed and CPU, and the recorder's seconds
	printf ' %.3f | %.3f | %.2f |' "$(columns "$1" "$2" | awk '{ print $4 / $1 }' | median)" \
		"$(columns "$1" "$2" | awk '{ print $5 / $2 }' | median)" "$(columns "$1" "$2" | awk '{ print $6 }' | median)"
}
echo "$rounds rounds on $(nproc) CPUs; untraced: a small call $(awk -v n="$((3 * calls))" '{ printf "%.0f\n", $2 / n * 1e9 }' "$work/calls.none" | median) ns, PostMark $(awk '{ print $1 }' "$work/postmark.none" | median) s, C build $(awk '{ print $1 }' "$work/build.none" | median) s."
echo
echo '| | a small call, CPU | PostMark elapsed | CPU | recorder s | C build elapsed | CPU | recorder s |'
echo '|---|--:|--:|--:|--:|--:|--:|--:|'
for way in $ways; do
	case $way in
	none) name='not traced' ;;
	record) name='recorded without content' ;;
	op) name='counted by op' ;;
	all) name='by op, user, process and latency' ;;
	extension) name='by op, process and extension' ;;
	filter) name='by op, with a filter that fits nothing' ;;
	esac
	echo "| $name | +$(ns "$way") ns |$(cell postmark "$way")$(cell build "$way")"
done

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench-filter.sh [ROUNDS]: what record --filter costs the recorded program, with 1, 10
# and 50 predicates, all true and all false, on PostMark and on a C build, beside no
# tracing and full tracing. Prints a table in Markdown; needs root, postmark, gcc and
# bin/iotape. The ways are interleaved: each figure is the median over ROUNDS (5) of the
# ratio to the untraced run of the same round. CPU is user and system time of the program,
# with what the kernel's hooks add to it; the recorder's own is a column of its own,
# in seconds. Nothing is sealed. It works in memory (/dev/shm), where calls are cheapest and
# their recording costs most, unless TMPDIR says where. SIZE=N makes the work N times as long.
set -eu -o pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5} size=${SIZE:-1}
iotape=${IOTAPE:-$PWD/bin/iotape}
for need in "$iotape" postmark gcc; do
	command -v "$need" >/dev/null || { echo "bench-filter: $need is missing" >&2; exit 2; }
done
tmp=${TMPDIR:-/dev/shm}
[ -w "$tmp" ] || tmp=/tmp
work=$(mktemp -d "$tmp/bench-filter.XXXXXX")
trap 'rm -rf "$work"' EXIT

# Predicates in pairs that cannot be folded into one test, all of which have to be asked:
# (uid = A or pid != B), all joined by and, accept every call; (uid != A and pid = B),
# joined by or, accept none.
predicates() { # TRUE|FALSE N
	local i out='' word
	word=' and '; [ "$1" = true ] || word=' or '
	if [ "$2" = 1 ]; then
		if [ "$1" = true ]; then echo 'pid != 4000000'; else echo 'pid = 4000000'; fi
		return
	fi
	for ((i = 0; i < $2 / 2; i++)); do
		[ -z "$out" ] || out+=$word
		if [ "$1" = true ]; then
			out+="(uid = $((50000 + i)) or pid != $((4000000 + i)))"
		else
			out+="(uid != $((50000 + i)) and pid = $((4000000 + i)))"
		fi
	done
	echo "$out"
}

cat >"$work/postmark.sh" <<END
cd "\$1"
printf 'set location %s\nset number 2000\nset transactions $((12000 * size))\nset subdirectories 20\nset size 500 20000\nset seed 42\nrun\nquit\n' "\$1" | postmark >/dev/null
END
cat >"$work/build.sh" <<END
cd "\$1"
for i in \$(seq $((12 * size))); do
	printf '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/stat.h>\n#include <unistd.h>\nint f%d(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * n; printf("%%d", s); return s; }\n' "\$i" >f\$i.c
	gcc -O2 -c f\$i.c
done
echo 'int main(void) { return 0; }' >main.c
gcc -o all main.c f*.o
END

# once WORKLOAD WAY [FILTER]: appends "elapsed cpu recorder" to its file, in seconds.
once() {
	local dir="$work/run" log="$work/log" t="$work/$1.$2" outer TIMEFORMAT='%R %U %S'
	rm -rf "$dir" "$work"/x.tape*
	mkdir "$dir"
	local inner=(bash -c 'TIMEFORMAT="%R %U %S"; time bash "$1" "$2" 2>/dev/null' time "$work/$1.sh" "$dir")
	case $2 in
	none) outer=$({ time "${inner[@]}" 2>"$log"; } 2>&1) || true ;;
	full) outer=$({ time "$iotape" record --backend ebpf --seal never -o "$work/x.tape" -- "${inner[@]}" 2>"$log"; } 2>&1) || true ;;
	*) outer=$({ time "$iotape" record --backend ebpf --seal never -o "$work/x.tape" --filter "$3" -- "${inner[@]}" 2>"$log"; } 2>&1) || true ;;
	esac
	# The program's own line is the one with three numbers.
	awk -v outer="$outer" '/^[0-9.]+ [0-9.]+ [0-9.]+$/ { split(outer, o, " "); print $1, $2 + $3, o[2] + o[3] - $2 - $3; found = 1 }
		END { exit !found }' "$log" >>"$t" || { echo "bench-filter: $1 $2 failed:" >&2; cat "$log" >&2; exit 1; }
}

ways='none full'
for n in 1 10 50; do ways+=" true-$n false-$n"; done
for workload in postmark build; do
	once $workload none # warms the caches
	rm "$work/$workload.none"
done
for ((round = 0; round < rounds; round++)); do
	for workload in postmark build; do
		for way in $ways; do
			case $way in
			none | full) once $workload "$way" ;;
			*) once $workload "$way" "$(predicates "${way%-*}" "${way#*-}")" ;;
			esac
		done
	done
done

median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
cell() { # WORKLOAD WAY: ratios of elapsed and CPU, and the recorder's seconds
	local columns
	columns=$(paste -d' ' "$work/$1.none" "$work/$1.$2")
	printf ' %.3f | %.3f | %.2f |' "$(awk '{ print $4 / $1 }' <<<"$columns" | median)" "$(awk '{ print $5 / $2 }' <<<"$columns" | median)" "$(awk '{ print $6 }' <<<"$columns" | median)"
}
echo "$rounds rounds on $(nproc) CPUs; untraced: PostMark $(awk '{ print $1 }' "$work/postmark.none" | median) s, C build $(awk '{ print $1 }' "$work/build.none" | median) s."
echo
echo '| | PostMark elapsed | CPU | recorder s | C build elapsed | CPU | recorder s |'
echo '|---|--:|--:|--:|--:|--:|--:|'
for way in $ways; do
	case $way in
	none) name='not traced' ;;
	full) name='everything is recorded' ;;
	true-1) name='1 predicate, true' ;;
	false-1) name='1 predicate, false' ;;
	*) name="${way#*-} predicates, all ${way%-*}" ;;
	esac
	echo "| $name |$(cell postmark "$way")$(cell build "$way")"
done

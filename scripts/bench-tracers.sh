#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench-tracers.sh [ROUNDS]: what several tracers over one target cost: 1, 2 and 5 of iotape
# run that take everything, and as many with a filter each, beside iotape record, and beside
# 2 recordings of their own (iotape record --pid, which may lose: only one can hold
# threads). Prints a table in Markdown; needs root, postmark and bin/iotape. CPU times are
# those of PostMark with what the hooks add to it, and of the recorder with what it takes to
# load its programs; nothing is sealed: streams go to files in memory (/dev/shm, or TMPDIR).
# Each figure is the median over ROUNDS (3). SIZE=N makes the work N times as long.
set -eu -o pipefail
cd "$(dirname "$0")/.."
rounds=${1:-3} size=${SIZE:-1}
iotape=${IOTAPE:-$PWD/bin/iotape}
for need in "$iotape" postmark; do
	command -v "$need" >/dev/null || { echo "bench-tracers: $need is missing" >&2; exit 2; }
done
tmp=${TMPDIR:-/dev/shm}
[ -w "$tmp" ] || tmp=/tmp
work=$(mktemp -d "$tmp/bench-tracers.XXXXXX")
trap 'rm -rf "$work"' EXIT
TIMEFORMAT='%R %U %S'

# The program waits until it is told to go, and writes down what it took by itself.
cat >"$work/program.sh" <<END
TIMEFORMAT='%R %U %S'
until [ -e "\$1.go" ]; do sleep 0.05; done
cd "\$1"
{ time printf 'set location %s\nset number 1000\nset transactions $((8000 * size))\nset size 500 20000\nset seed 42\nrun\nquit\n' "\$1" | postmark >/dev/null; } 2>"\$1.took"
END

filters=('op = read' 'op = write' 'failed' 'class = namespace' 'latency > 100us')
config() { # ALL|FILTERED N LATE
	printf '[control]\nlate = %s\n' "$3"
	for ((i = 0; i < $2; i++)); do
		printf '[[tracer]]\nname = "t%d"\n' "$i"
		[ "$1" = all ] || printf "filter = '%s'\n" "${filters[i]}"
		printf '[tracer.output]\nto = "%s/out.%d"\n' "$work" "$i"
	done
}

# once WAY: appends "program's CPU, recorders' CPU, bytes" to the way's file.
once() {
	local dir="$work/run" outer inner
	rm -rf "$dir"* "$work"/out.* "$work"/took.*
	mkdir "$dir"
	local program=(bash "$work/program.sh" "$dir")
	case $1 in
	none) touch "$dir.go"; "${program[@]}"; outer='0 0 0' ;;
	record) touch "$dir.go"; outer=$({ time "$iotape" record --backend ebpf --to "$work/out.0" -- "${program[@]}" 2>"$work/log"; } 2>&1) ;;
	apart-*)
		"${program[@]}" &
		local pid=$! n
		for ((n = 0; n < ${1#*-}; n++)); do
			(time "$iotape" record --pid $pid --on-overflow drop --to "$work/out.$n" 2>"$work/log") 2>"$work/took.$n" &
		done
		until [ "$(find "$work" -name 'out.*' -size +0 | wc -l)" = "${1#*-}" ]; do
			sleep 0.1 # what they begin with is the state of the program
			[ -n "$(jobs -r)" ] || { cat "$work/log" >&2; exit 1; }
		done
		touch "$dir.go"
		wait
		outer=$(awk '{ u += $2; s += $3 } END { print 0, u, s }' "$work"/took.*)
		;;
	*)
		IFS=- read -r kind n late <<<"$1"
		config "$kind" "$n" "$late" >"$work/c.toml"
		touch "$dir.go"
		outer=$({ time "$iotape" run "$work/c.toml" -- "${program[@]}" 2>"$work/log"; } 2>&1)
		;;
	esac
	inner=$(cat "$dir.took")
	local bytes=0
	[ ! -e "$work/out.0" ] || bytes=$(cat "$work"/out.* | wc -c)
	awk -v i="$inner" -v o="$outer" -v b="$bytes" -v way="$1" 'BEGIN { split(i, x, " "); split(o, y, " ")
		own = x[2] + x[3]; rec = y[2] + y[3]; if (rec > 0 && way !~ /^apart/) rec -= own; print own, rec, b }' >>"$work/$1.figures"
}

ways='none record all-1-false all-1-true all-2-true all-5-true filtered-1-true filtered-2-true filtered-5-true apart-1 apart-2'
for ((round = 0; round < rounds; round++)); do
	for way in $ways; do once "$way"; done
done
median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
names() {
	case $1 in
	none) echo 'not recorded' ;;
	record) echo '`iotape record`' ;;
	all-*-false) echo '1 tracer, everything, `late = false`' ;;
	all-*) IFS=- read -r _ n _ <<<"$1"; echo "$n tracer$([ "$n" = 1 ] || echo s), everything" ;;
	filtered-*) IFS=- read -r _ n _ <<<"$1"; echo "$n tracer$([ "$n" = 1 ] || echo s), a filter each" ;;
	apart-*) echo "${1#*-} × \`iotape record --pid\`" ;;
	esac
}
echo "$("$iotape" version | head -1); Linux $(uname -r), $(nproc) CPUs; rounds: $rounds; load: $(cut -d' ' -f1 /proc/loadavg)"
echo
echo '| PostMark | CPU of the program | CPU of the recorders | both | streams |'
echo '|---|---:|---:|---:|---:|'
for way in $ways; do
	own=$(awk '{ print $1 }' "$work/$way.figures" | median)
	rec=$(awk '{ print $2 }' "$work/$way.figures" | median)
	bytes=$(awk '{ print $3 }' "$work/$way.figures" | median)
	awk -v n="$(names "$way")" -v o="$own" -v r="$rec" -v b="$bytes" 'BEGIN { printf "| %s | %.2f s | %.2f s | %.2f s | %.0f MiB |\n", n, o, r, o + r, b / 1048576 }'
done

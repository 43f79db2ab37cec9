#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench-replay.sh [ROUNDS]: how fast tapes of random reads and writes are replayed in
# memory, beside the program itself and, where it is installed, fio with the same trace,
# in turn. Prints calls per second, the medians of so many rounds (5), and the ratio of
# each to the program in its round. Needs a bin/iotape, and 1 GiB in /dev/shm.
set -eu -o pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5}
iotape=$PWD/bin/iotape
d=$(mktemp -d /dev/shm/iotape-bench.XXXXXX)
trap 'rm -rf "$d"' EXIT
gcc -O2 -pthread -o "$d/randrw" bench/src/randrw.c
mkdir "$d/files"

# tape NAME CONTENT THREADS CALLS SIZE BLOCK
tape() {
	"$iotape" record --no-index -o "$d/$1.tape" --content "$2" -- "$d/randrw" "$3" "$4" "$5" "$6" "$d/files" >/dev/null 2>&1
	echo "$3 $4 $5 $6" >"$d/$1.args"
}
tape one none 1 1000000 $((64 << 20)) 4096
tape content full 1 1000000 $((64 << 20)) 4096
tape small full 1 1000000 $((64 << 20)) 512
tape four none 4 50000 $((16 << 20)) 4096
tape long none 4 500000 $((16 << 20)) 4096
fio=
if command -v fio >/dev/null; then
	"$iotape" convert "$d/one.tape" "$d/one.fio" >/dev/null 2>&1 || [ $? = 1 ] # it says what has no place there
	[ ! -s "$d/one.fio" ] || fio=yes
fi

native() {
	rm -rf "$d/files" && mkdir "$d/files" # as a replay finds its target
	"$d/randrw" $(cat "$d/$1.args") "$d/files"
}
replay() { # NAME FLAG...
	rm -rf "$d/into"
	"$iotape" replay "$d/$1.tape" --into "$d/into" --json "${@:2}" 2>/dev/null |
		python3 -c 'import json,sys; r=json.load(sys.stdin); assert r["different"]==0, r["first"]; print(round(r["replayed"]/r["timing"]["replayed_ns"]*1e9))'
}
fiolog() {
	fio --name=x --read_iolog="$d/one.fio" --replay_no_stall=1 --ioengine=psync --thread --output-format=json 2>/dev/null |
		python3 -c 'import json,sys; j=json.load(sys.stdin)["jobs"][0]; n=j["read"]["total_ios"]+j["write"]["total_ios"]; print(round(n/(j["job_runtime"]/1000)))' || true
}

for ((i = 0; i < rounds; i++)); do
	for t in one content small four long; do
		echo "$t|the program|$(native $t)"
		case $t in
		one) echo "$t|recorded|$(replay $t --order recorded)"; echo "$t|overlap|$(replay $t --order overlap)"; echo "$t|resource|$(replay $t --order resource)"
			[ -z "$fio" ] || echo "$t|fio, iolog v3|$(fiolog)" ;;
		content | small) echo "$t|resource, verified|$(replay $t --order resource --verify)" ;;
		*) echo "$t|recorded|$(replay $t --order recorded)"; echo "$t|overlap|$(replay $t --order overlap)"; echo "$t|resource|$(replay $t --order resource)" ;;
		esac
	done
done | python3 -c '
import sys, statistics as st
rows, base = {}, {}
for line in sys.stdin:
    t, w, n = line.strip().split("|")
    if not n: continue
    n = float(n)
    if w == "the program": base.setdefault(t, []).append(n)
    rows.setdefault((t, w), []).append((n, n / base[t][-1]))
print("| tape | | calls/s | of the program |\n|---|---|--:|--:|")
for (t, w), v in rows.items():
    print(f"| {t} | {w} | {st.median(x for x, _ in v):,.0f} | {st.median(r for _, r in v):.2f} |")
'

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench-agent.sh [ROUNDS [FILES]]: what an agent in its default configuration (the whole machine, no
# content, 64 MiB) costs a build in the manner of the Andrew benchmark: make a tree, copy
# files into it, look at all, read all, compile. Rounds without and with an agent take turns;
# given are the medians' ratios, of the time that the build took and of its processor time,
# the agent's own processor time, wake-ups and memory, what it lost, and how much it sent: for
# a build, and for a host and day. As root, on an idle machine (processor time means something
# on others, too). With FILES only so many files are compiled: "bench-agent.sh 1 3" shows in a
# minute that all of it works, and measures nothing.
set -eu -o pipefail
cd "$(dirname "$0")/.."
rounds=${1:-7} files=${2:-}
scripts/fetch-lua.sh bin/lua.tar.gz >/dev/null
dir=$(mktemp -d "${TMPDIR:-/tmp}/bench-agent.XXXXXX")
collector= agent=
finish() {
	[ -z "$agent" ] || kill "$agent" 2>/dev/null || true
	[ -z "$collector" ] || kill "$collector" 2>/dev/null || true
	wait
	rm -rf "$dir"
}
trap finish EXIT
go build -buildvcs=false -o "$dir/" ./cmd/iotape ./cmd/iotape-full
CGO_ENABLED=0 go build -buildvcs=false -o "$dir/iotape-agent" ./cmd/iotape-agent
mkdir "$dir/src" "$dir/data"
tar -xzf bin/lua.tar.gz -C "$dir/src" --strip-components=1
"$dir/iotape" collector enrol bench --data "$dir/data" -o "$dir/bench.nk"
cat >"$dir/agent.toml" <<-EOF
	host = "bench"
	collectors = ["nats://127.0.0.1:14422"]
	key = "$dir/bench.nk"
	spool = "$dir/spool"
	[record]
	# The collector is on this machine, too: what it does is not the host's.
	filter = 'comm != "iotape"'
EOF
"$dir/iotape" collector --data "$dir/data" --listen 127.0.0.1:14422 --page 127.0.0.1:17273 >/dev/null 2>&1 &
collector=$!

# andrew: makes the build, and prints the ms that it took and its processor time in ms
andrew() {
	rm -rf "$dir/work"
	mkdir -p "$dir/work"/{a,b,c}
	local start end
	start=$(date +%s%N)
	cp -r "$dir/src/." "$dir/work/a"
	find "$dir/work/a" -type f -exec stat {} + >/dev/null
	find "$dir/work/a" -type f -exec grep -l lua_State {} + >/dev/null || true
	if [ -n "$files" ]; then
		(cd "$dir/work/a/src" && find . -name 'l*.c' | sort | head -n "$files" | xargs -n 1 cc -O2 -c)
	else
		build
	fi
	end=$(date +%s%N)
	times >"$dir/times" # of this subshell and its children; one more, in a pipe, would have none
	echo "$(((end - start) / 1000000)) $(awk -F'[ms ]+' 'NR == 2 {print int(($1 * 60 + $2 + $3 * 60 + $4) * 1000)}' "$dir/times")"
}
build() {
	make -s -C "$dir/work/a/src" linux-noreadline >/dev/null 2>&1 || make -s -C "$dir/work/a" linux >/dev/null 2>&1
}
start_agent() {
	"$dir/iotape-agent" --config "$dir/agent.toml" 2>>"$dir/said" &
	agent=$!
	sleep 3
}
# used: the agent's processor time in ms, and how often its threads have slept and been woken
used() { echo "$(awk '{print ($14 + $15) * 10}' "/proc/$agent/stat") $(awk '/^voluntary/ {n += $2} END {print n}' "/proc/$agent/task/"*/status)"; }
stop_agent() {
	rss=$(awk '/RssAnon/ {print $2 + 16384}' "/proc/$agent/status") # and the rings
	kill "$agent"
	wait "$agent" || true
	agent=
}
andrew >/dev/null # so that all is cached
without=() with=() without_cpu=() with_cpu=() cpu=0 wakes=0
for ((i = 0; i < rounds; i++)); do
	read -r ms busy < <(andrew)
	without+=("$ms") without_cpu+=("$busy")
	start_agent
	read -r cpu0 wakes0 < <(used)
	read -r ms busy < <(andrew)
	with+=("$ms") with_cpu+=("$busy")
	read -r cpu1 wakes1 < <(used)
	stop_agent
	cpu=$((cpu + cpu1 - cpu0)) wakes=$((wakes + wakes1 - wakes0))
done
median() { printf '%s\n' "$@" | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
sleep 2
read -r events bytes lost < <("$dir/iotape" fleet --json --collector 127.0.0.1:17273 | python3 -c '
import json, sys
h = json.load(sys.stdin)["hosts"][0]
print(h["stored"], h["stored_bytes"], h["lost"])')
awk -v a="$(median "${without[@]}")" -v b="$(median "${with[@]}")" -v ca="$(median "${without_cpu[@]}")" -v cb="$(median "${with_cpu[@]}")" -v n="$rounds" \
	-v cpu="$cpu" -v wakes="$wakes" -v rss="$rss" -v e="$events" -v by="$bytes" -v l="$lost" 'BEGIN {
	printf "build: %.2f s without, %.2f s with an agent: %.3f times (medians of %d)\n", a / 1000, b / 1000, b / a, n
	printf "build, processor time: %.2f s without, %.2f s with an agent: %.3f times\n", ca / 1000, cb / 1000, cb / ca
	printf "agent: %.0f ms of processor time for each build, %.1f %% of one while it lasts; woken %.0f times a second; %.0f MiB of memory, its rings included\n", cpu / n, 100 * cpu / n / b, wakes / n / b * 1000, rss / 1024
	printf "sent: %.0f events and %.1f MB for each build, %.0f bytes for an event; lost %d of %d\n", e / n, by / n / 1e6, by / e, l, e + l
	printf "a host and day (computed): %.1f GB of nothing but such builds; %.1f GB of 100 events a second\n", by / n / (b / 1000) * 86400 / 1e9, 100 * by / e * 86400 / 1e9
}'

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench-fleet.sh [--sync] [SECONDS]: what one collector takes, and what a host costs, on this
# machine; about five minutes with 20 seconds for each line. Each line is one run: simulated
# agents in one process, the collector and its broker in another, on the same processors; so
# the collector's own share is given as processor time, and what it could take on two
# processors of its own is computed from that. Prints the table of docs/scale.md. As root is
# not needed.
#
# With --sync it prints what it costs that the broker syncs each batch to the disk before it answers (collector
# --sync 0) instead of every 2 s: each load with both, in turn, ROUNDS (3) times. TMPDIR has to be on the disk in
# question; the first line names its file system.
set -eu -o pipefail
cd "$(dirname "$0")/.."
compare=
[ "${1:-}" != --sync ] || { compare=1; shift; }
seconds=${1:-20} extra=() label=
dir=$(mktemp -d "${TMPDIR:-/tmp}/bench-fleet.XXXXXX")
collector= agents=
finish() {
	[ -z "$agents" ] || kill "$agents" 2>/dev/null || true
	[ -z "$collector" ] || kill "$collector" 2>/dev/null || true
	wait
	rm -rf "$dir"
}
trap finish EXIT
go build -buildvcs=false -o "$dir/" ./cmd/iotape ./cmd/iotape-full
CGO_ENABLED=0 go build -buildvcs=false -o "$dir/iotape-agent" ./cmd/iotape-agent
ulimit -n "$(ulimit -H -n)"
most=1000 # agents of a run: all keys are made once
mkdir "$dir/enrolled" "$dir/nk"
seq 0 $((most - 1)) | xargs -P "$(nproc)" -I% "$dir/iotape" collector enrol h% --data "$dir/enrolled" -o "$dir/nk/h%.nk"

# cpu PID: processor time in hundredths of a second, user and system
cpu() { awk '{print $14 + $15}' "/proc/$1/stat"; }
rss() { awk '/VmRSS/ {print int($2 / 1024)}' "/proc/$1/status"; }
ask() { "$dir/iotape" fleet --json --collector 127.0.0.1:17173 2>/dev/null || true; }
field() { grep -m1 "^  \"$1\":" | tr -dc 0-9; }

# run AGENTS RATE SIZE: so many agents that make RATE events of SIZE bytes a second each
run() {
	local n=$1 rate=$2 size=$3 i
	rm -rf "$dir/data" "$dir/agents"
	mkdir -p "$dir/agents" "$dir/data"
	cp -a "$dir/enrolled/keys" "$dir/data/keys"
	for ((i = 0; i < n; i++)); do
		cat >"$dir/agents/h$i.toml" <<-EOT
			host = "h$i"
			collectors = ["nats://127.0.0.1:14322"]
			key = "$dir/nk/h$i.nk"
			spool = "$dir/agents/h$i.spool"
			[limits]
			spool = "16M"
			[record]
			synthetic = "rate=$rate,size=$size"
		EOT
	done
	"$dir/iotape" collector --data "$dir/data" --listen 127.0.0.1:14322 --page 127.0.0.1:17173 "${extra[@]}" >"$dir/listens" 2>"$dir/said" &
	collector=$!
	until [ -s "$dir/listens" ]; do
		kill -0 $collector || { cat "$dir/said" >&2; exit 1; }
		sleep 0.2
	done
	"$dir/iotape-agent" simulate "$dir/agents" 2>"$dir/agents.said" &
	agents=$!
	# Connecting is not measured.
	for ((i = 0; i < 60; i++)); do
		[ "$(ask | grep -c '"open": [1-9]')" -lt "$n" ] || break
		sleep 1
	done
	sleep 3
	local f0 f1 c0 c1 a0 a1 t0 t1
	f0=$(ask) c0=$(cpu $collector) a0=$(cpu $agents) t0=$(date +%s%N)
	sleep "$seconds"
	f1=$(ask) c1=$(cpu $collector) a1=$(cpu $agents) t1=$(date +%s%N)
	awk -v n="$n" -v rate="$rate" -v size="$size" -v t=$(((t1 - t0) / 1000)) -v c=$((c1 - c0)) -v a=$((a1 - a0)) -v rss="$(rss $collector)" -v arss="$(rss $agents)" -v label="$label" \
		-v p=$(($(field batches <<<"$f1") - $(field batches <<<"$f0"))) -v e=$(($(field events <<<"$f1") - $(field events <<<"$f0"))) \
		-v b=$(($(field bytes <<<"$f1") - $(field bytes <<<"$f0"))) '
		function commas(v,    s, n) { s = sprintf("%.0f", v); for (n = length(s) - 3; n > 0; n -= 3) s = substr(s, 1, n) "," substr(s, n + 1); return s }
		BEGIN {
		s = t / 1e6; cpu = c / 100
		printf "| %s%s × %s × %s | %s | %s | %.1f | %.2f | %s | %.0f | %d | %.2f | %d |\n", label, commas(n), commas(rate), commas(size), commas(p / s), commas(e / s), b / s / 1e6, cpu / s, commas(p > 0 ? cpu * 1e6 / p : 0), (cpu > 0 ? b / cpu / 1e6 : 0), rss, a / 100 / s / n * 100, arss / n * 1024
	}'
	kill "$agents"
	wait "$agents" 2>/dev/null || true
	kill "$collector"
	wait "$collector" 2>/dev/null || true
	agents= collector=
}

echo "$(nproc) processors, $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1); load $(cut -d' ' -f1 /proc/loadavg) at the start; $seconds s for each line; on $(stat -f -c %T "$dir")"
echo
echo "| agents × events/s × bytes | batches/s | events/s | MB/s | collector and broker: CPUs | µs per batch | MB per CPU second | their memory, MiB | an agent: % of a CPU | its memory, kB |"
echo "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
if [ -n "$compare" ]; then
	for ((round = 0; round < ${ROUNDS:-3}; round++)); do
		for sync in 2s 0; do
			extra=(--sync $sync) label="sync $sync: "
			run 10 10000 100
			run 100 100 100
		done
	done
	exit
fi
run 10 10000 100   # large batches: bytes count
run 2 100000 1000
run 100 100 100    # small batches: their number counts
run 500 100 100
run 1000 10 100

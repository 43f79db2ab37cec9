#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench-lake.sh [ROWS [HOSTS [DAYS]]]: times a lake of a simulated fleet (200 million events of
# 1,000 hosts on 30 days; 1G is 1,000 million): its growth, adding a tape, queries of one
# host-day, of one path over all days, and of all summaries, and compaction. Needs some 130 bytes
# of disk for an event, in $TMPDIR, and half a second for a host-day. Prints the table of docs/scale.md. Run it alone on
# the machine. LAKE=DIR keeps the lake in DIR, and uses what is there.
set -eu -o pipefail
cd "$(dirname "$0")/.."
rows=${1:-200M} hosts=${2:-1000} days=${3:-30}
rows=${rows/%G/000000000} rows=${rows/%M/000000}
dir=$(mktemp -d "${TMPDIR:-/tmp}/bench-lake.XXXXXX")
trap 'rm -rf "$dir"' EXIT
lake=${LAKE:-$dir/lake}
go build -buildvcs=false -o "$dir/" ./cmd/iotape ./cmd/iotape-full
iotape=$dir/iotape

# timed LABEL COMMAND...: runs it, and prints a line of the table: seconds, and the most memory
timed() {
	local label=$1
	shift
	/usr/bin/time -f '%e %M' -o "$dir/time" "$@" >"$dir/out" 2>"$dir/err" || { cat "$dir/err" >&2; exit 1; }
	read -r seconds kib <"$dir/time"
	printf '| %s | %s | %d |\n' "$label" "$seconds" $((kib / 1024))
}
ask() { timed "$1" "$iotape" query --lake "$lake" "${@:2}"; }

if [ ! -e "$lake/catalogue/latest" ]; then
	echo "bench-lake: making $rows events of $hosts hosts on $days days in $lake" >&2
	LAKE_SCALE_LAKE=$lake LAKE_SCALE_HOSTS=$hosts LAKE_SCALE_DAYS=$days LAKE_SCALE_ROWS=$rows \
		go test -buildvcs=false ./store/lake -run 'TestScale$' -count 1 -timeout 24h -v >&2
fi
day=$(date -u -d "$((days / 2)) days ago" +%F) next=$(date -u -d "$((days / 2 - 1)) days ago" +%F)
host=host$(printf %04d $((hosts / 2)))
"$iotape" record --backend ptrace -o "$dir/one.tape" -- sh -c 'for i in $(seq 200); do cat /etc/passwd; done' >"$dir/out" 2>&1

echo '| what | s | MiB |'
echo '|---|--:|--:|'
echo "bench-lake: load $(cut -d' ' -f1-3 /proc/loadavg), $(nproc) processors" >&2
timed "list the tables" "$iotape" lake list --lake "$lake"
cp "$dir/out" "$dir/tables"
timed "add a tape ($("$iotape" query "$dir/one.tape" --csv 'SELECT count(*) FROM events' | tail -n 1) events)" \
	"$iotape" lake add --lake "$lake" "$dir/one.tape"
ask "one host-day: events by operation" --host "$host" --from "$day" --to "$next" \
	'SELECT op, count(*), sum(bytes) FROM events GROUP BY op'
ask "the same, by WHERE" "SELECT op, count(*), sum(bytes) FROM events WHERE host = '$host' AND day = '$day' GROUP BY op"
ask "one path, all hosts and days: opens" --path /etc/shadow 'SELECT day, host, comm, count(*) FROM opens GROUP BY ALL'
ask "one path, all hosts and days: events" --path /etc/shadow 'SELECT day, host, comm, count(*) FROM events GROUP BY ALL'
ask "the same, by WHERE" "SELECT day, host, comm, count(*) FROM events WHERE file = '/etc/shadow' GROUP BY ALL"
ask "all summaries by host" 'SELECT host, count(*), sum(calls), sum(written) FROM summaries GROUP BY host'
ask "all events by operation, 512 MiB" --memory 512M 'SELECT op, count(*), sum(bytes) FROM events GROUP BY op'
timed "tstat of one host" "$iotape" tstat --lake "$lake" --host "$host"
timed "tstat of all, 512 MiB" "$iotape" tstat --lake "$lake" --memory 512M
timed "patterns of all" "$iotape" patterns --lake "$lake"
timed "find tapes" "$iotape" catalogue find --lake "$lake" 'calls > 1e9'
"$iotape" record --backend ptrace -o "$dir/two.tape" -- sh -c 'cat /etc/passwd' >"$dir/out" 2>&1
"$iotape" lake add --lake "$lake" "$dir/two.tape" 2>/dev/null
timed "compact a host-day of two tapes" "$iotape" lake compact --lake "$lake"
timed "expire" "$iotape" lake expire --lake "$lake"
echo
cat "$dir/tables"
bytes=$(du -sb "$lake" | cut -f1)
echo
echo "$bytes bytes: $((bytes / hosts / days)) for a host and day, $((bytes / rows)) for an event"

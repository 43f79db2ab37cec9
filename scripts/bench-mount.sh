#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench-mount.sh [SECONDS]: what recording through a mount costs, beside eBPF, with
# bin/iotape: PostMark and a build of C, on files in memory. Rounds of all ways, one after
# the other, are begun until SECONDS (100) are over, at least one; then a table is written
# in Markdown. Of several rounds it has the medians.
#
# "program" is the CPU time of what is recorded, "recorder" that of iotape while it
# records; sealing is in neither. Needs root, and what scripts/setup.sh --bench installs.
set -eu -o pipefail
cd "$(dirname "$0")/.."
budget=${1:-100} transactions=${TRANSACTIONS:-5000}
iotape=$PWD/bin/iotape
[ -x "$iotape" ] || { echo "bench-mount: bin/iotape is missing: make build" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "bench-mount: needs root" >&2; exit 2; }
command -v postmark >/dev/null || { echo "bench-mount: needs postmark: scripts/setup.sh --bench" >&2; exit 2; }
[ -f bin/lua.tar.gz ] || scripts/fetch-lua.sh bin/lua.tar.gz >&2
lua=$PWD/bin/lua.tar.gz

dir=$(mktemp -d /dev/shm/iotape-bench-mount.XXXXXX)
pid=
end() {
	[ -z "$pid" ] || kill -9 "$pid" 2>/dev/null || :
	umount -l "$dir/mnt" 2>/dev/null || :
	rm -rf "$dir"
}
trap end EXIT
mkdir "$dir/mnt"
tick=$(getconf CLK_TCK)
TIMEFORMAT='%R %U %S'

prepare() { # WORKLOAD: fills lower
	rm -rf "$dir/lower" && mkdir "$dir/lower"
	case $1 in
	postmark) mkdir "$dir/lower/mail"
		printf 'set seed 42\nset number 500\nset transactions %d\nset location mail\nrun\nquit\n' "$transactions" >"$dir/postmark.cfg" ;;
	build) tar -xf "$lua" -C "$dir/lower" --strip-components=1 --no-same-owner ;;
	esac
}

command_of() { # WORKLOAD: in the directory of the files
	case $1 in
	postmark) echo "postmark $dir/postmark.cfg" ;;
	build) echo "make -s -j2 -C src generic" ;;
	esac
}

# timed DIR WORKLOAD: runs it there, and leaves "elapsed user sys" in the file program.
timed() { (cd "$1" && { time $(command_of "$2") >"$dir/out" 2>&1; } 2>"$dir/program") || { cat "$dir/out" >&2; exit 2; }; }

# note WORKLOAD WAY RECORDER EVENTS: a line of the results.
note() { echo "$1 $2 $(cat "$dir/program") $3 $4" >>"$dir/results"; }

# sealed: makes the tape and says how many events it has; a loss ends everything.
sealed() {
	"$iotape" seal --no-index "$dir/x.tape.partial" >"$dir/said" 2>&1 || { cat "$dir/said" >&2; exit 2; }
	grep -q 'lost 0;' "$dir/said" || { cat "$dir/said" >&2; exit 2; }
	sed -n 's/.*iotape: \([0-9,]*\) events.*/\1/p' "$dir/said" | tr -d ,
	rm -rf "$dir"/x.tape*
}

run() { # WORKLOAD WAY
	prepare "$1"
	case $2 in
	native) timed "$dir/lower" "$1"; note "$1" "$2" 0 0 ;;
	mount*)
		local flags="--seal never"
		[ "$2" != mount-cache ] || flags+=" --cache 1s"
		[ "$2" != mount-none ] || flags+=" --content none"
		"$iotape" mount "$dir/lower" "$dir/mnt" -o "$dir/x.tape" $flags 2>"$dir/said" &
		pid=$!
		until mountpoint -q "$dir/mnt"; do kill -0 $pid || { cat "$dir/said" >&2; exit 2; }; sleep .02; done
		timed "$dir/mnt" "$1"
		local cpu
		cpu=$(awk -v hz="$tick" '{ sub(/.*\) /, ""); print ($12 + $13) / hz }' /proc/$pid/stat)
		umount "$dir/mnt"
		wait $pid
		pid=
		note "$1" "$2" "$cpu" "$(sealed)" ;;
	ebpf)
		local all
		{ time "$iotape" record --backend ebpf --user root --seal never -o "$dir/x.tape" -- \
			bash -c "TIMEFORMAT='$TIMEFORMAT'; cd '$dir/lower' && { time $(command_of "$1") >'$dir/out' 2>&1; } 2>'$dir/program'" 2>"$dir/said"; } 2>"$dir/all" || { cat "$dir/said" >&2; exit 2; }
		all=$(awk 'NR == FNR { p = $2 + $3; next } { print ($2 + $3) - p }' "$dir/program" "$dir/all")
		note "$1" "$2" "$all" "$(sealed)" ;;
	esac
}

ways="native mount mount-cache mount-none ebpf"
began=$SECONDS rounds=0
while [ $rounds = 0 ] || [ $((SECONDS - began)) -lt "$budget" ]; do
	for workload in postmark build; do
		for way in $ways; do run $workload "$way"; done
	done
	rounds=$((rounds + 1))
done

rm -rf "$dir"/x.tape*
start=$({ time "$iotape" record --backend ebpf --user root --seal never -o "$dir/x.tape" -- true 2>/dev/null; } 2>&1 | awk '{ print $2 + $3 }')

echo "$("$iotape" version | head -n1 | cut -d';' -f1); Linux $(uname -r), $(nproc) CPUs, files in memory; rounds: $rounds; the start of eBPF is $start s of its recorder's; load at the end: $(cut -d' ' -f1 /proc/loadavg)"
echo
echo "| | events | elapsed | CPU: program | recorder | both | times native |"
echo "|---|---:|---:|---:|---:|---:|---:|"
median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
column() { awk -v w="$1" -v y="$2" "\$1 == w && \$2 == y { print $3 }" "$dir/results" | median; }
declare -A title=([native]="native" [mount]="mount" [mount-cache]="mount, \`--cache 1s\`" [mount-none]="mount, \`--content none\`" [ebpf]="eBPF, all content")
for workload in postmark build; do
	name="PostMark, 500 files, $transactions transactions"
	[ $workload = postmark ] || name="make -j2 of Lua 5.4"
	echo "| **$name** | | | | | | |"
	base=$(column $workload native '$4 + $5')
	for way in $ways; do
		both=$(column $workload "$way" '$4 + $5 + $6')
		printf '| %s | %s | %.2f s | %.2f s | %.2f s | %.2f s | %.2f |\n' "${title[$way]}" "$(column $workload "$way" '$7')" \
			"$(column $workload "$way" '$3')" "$(column $workload "$way" '$4 + $5')" "$(column $workload "$way" '$6')" "$both" "$(awk "BEGIN { print $both / $base }")"
	done
done

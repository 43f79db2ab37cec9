#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# compare-tools.sh [FILE]: records one program with iotape and with other tools, asks twenty questions of what each
# wrote, and prints the table of docs/compare-tools.md; with FILE, it puts the table into that page between its marks.
# An answer counts if the expected text is in the tool's output. Costs are ratios of elapsed times in this run: run it
# alone on the machine. As root; the tools are in Debian's packages strace, ltrace, linux-perf, bpftrace, sysdig,
# fatrace, inotify-tools. One that is not there, or does not run here, has its reason in the table.
set -u
cd "$(dirname "$0")/.."
go build -o bin/ ./cmd/iotape || exit 1
iotape=$PWD/bin/iotape
page=${1:+$(realpath "$1")}
ulimit -l unlimited 2>/dev/null
work=$(mktemp -d)
trap 'cd /; if [ -n "${IOTAPE_KEEP:-}" ]; then echo "$work" >&2; else rm -rf "$work"; fi' EXIT
export XDG_RUNTIME_DIR=$work LC_ALL=C
runs=${IOTAPE_RUNS:-5}
cd "$work" || exit 1

cat >program <<'END'
cd "$1" && exec 2>/dev/null
cat etc/conf.ini etc/missing.ini >seen.txt
printf 'secret-bytes-4711\n' >victim.txt
mv victim.txt renamed.txt
rm renamed.txt
dd if=/dev/zero of=filler.bin bs=65536 count=64 conv=fsync
dd if=etc/conf.ini of=filler.bin bs=4096 seek=3 count=1 conv=notrunc
bash -c ': child-arg-77; exit 7'
sh -c 'kill -TERM $$'
(exec 3<>/dev/tcp/127.0.0.1/9)
for i in $(seq 60); do cat etc/conf.ini >copy.$i; done
exit 0
END
# Elapsed time of a command, in ms; the output of a tool is in its file.
ms() {
	local from to
	from=$(date +%s%N)
	"$@" >/dev/null 2>&1 </dev/null
	to=$(date +%s%N)
	echo $(((to - from) / 1000000))
}
fresh() { rm -rf tree && mkdir -p tree/etc && echo "value-of-config-42" >tree/etc/conf.ini; }
middle() { sort -n | sed -n "$((($1 + 1) / 2))p"; }
program=(bash "$work/program" "$work/tree")

# The tools: what each does while the program runs. Those that watch the machine run beside the program.
around() { # OUTPUT COMMAND...: begins it, runs the program when it has had time to begin, and ends it
	local out=$1 pids=() each
	shift
	for each in "$@"; do
		setsid bash -c "exec $each" >>"$out" 2>&1 </dev/null &
		pids+=($!)
	done
	sleep "${settle:-3}" # they say in no common way that they have begun
	took=$(ms "${program[@]}")
	sleep 1
	for each in "${pids[@]}"; do kill -INT -- "-$each" 2>/dev/null; done
	sleep 1
	for each in "${pids[@]}"; do kill -KILL -- "-$each" 2>/dev/null; done
	wait "${pids[@]}" 2>/dev/null
}
bt() { ls "/usr/sbin/$1.bt"; }
tools=(iotape strace ltrace perf bpftrace sysdig fatrace inotifywait)
run_iotape() { rm -rf it.tape; took=$(ms "$iotape" record --no-index -o it.tape -- "${program[@]}"); }
run_strace() { took=$(ms strace -f -yy -T -tt -s 64 -o strace.out "${program[@]}"); }
run_ltrace() { took=$(ms ltrace -S -f -T -s 64 -o ltrace.out "${program[@]}"); }
run_perf() { took=$(ms perf trace -o perf.out "${program[@]}"); }
run_bpftrace() {
	settle=8 around bpftrace.out "$(bt opensnoop)" "$(bt execsnoop)" "$(bt killsnoop)" "$(bt syncsnoop)" "$(bt tcpconnect)" \
		"$(bt statsnoop)" "$(bt biosnoop)" "$(bt syscount)"
}
run_sysdig() { settle=1 around sysdig.out "sysdig -s 64 proc.name!=sysdig"; }
run_fatrace() { settle=1 around fatrace.out "fatrace -t -o $work/fatrace.log"; cat fatrace.log >>fatrace.out 2>/dev/null; }
run_inotifywait() { settle=1 around inotifywait.out "inotifywait -m -r $work/tree"; }

# What else a tool can be asked, beside the run whose time is taken; its output is added.
more_strace() { strace -f -c -o strace.sum "${program[@]}"; cat strace.sum >>strace.out; }
more_ltrace() { ltrace -c -S -f -o ltrace.sum "${program[@]}"; cat ltrace.sum >>ltrace.out; }
more_perf() { perf trace -s -o perf.sum "${program[@]}"; cat perf.sum >>perf.out; }

# Why a tool cannot run here, or nothing.
lacks() {
	case $1 in
	iotape) ;;
	sysdig) command -v sysdig >/dev/null || { echo "not installed"; return; }
		timeout 10 sysdig -n 1 >/dev/null 2>&1 || echo "does not run here: needs a kernel module" ;;
	bpftrace) command -v bpftrace >/dev/null || { echo "not installed"; return; }
		timeout 20 bpftrace -e 'BEGIN{exit()}' >/dev/null 2>&1 || echo "does not run here" ;;
	*) command -v "$1" >/dev/null || echo "not installed" ;;
	esac
}

declare -A why cost
plain=$(for _ in $(seq "$runs"); do fresh; ms "${program[@]}"; done | middle "$runs")
for t in "${tools[@]}"; do
	why[$t]=$(lacks "$t")
	[ -z "${why[$t]}" ] || continue
	cost[$t]=$(for _ in $(seq "$runs"); do
		fresh
		rm -f "$t.out" fatrace.log
		"run_$t" >/dev/null 2>&1
		echo "$took"
	done | middle "$runs")
	fresh
	if declare -F "more_$t" >/dev/null; then "more_$t" >/dev/null 2>&1 </dev/null; fi
done
fresh
rm -rf it2.tape && "$iotape" record --no-index -o it2.tape -- "${program[@]}" 2>/dev/null
fresh
rm -rf disk.tape && "$iotape" record --block-requests --no-index -o disk.tape -- "${program[@]}" 2>/dev/null

# The questions: a name; for iotape a command whose output must have the text; for the others the text in their output.
# "-" where a tool has no command or output for it at all.
questions=()
ask() { questions+=("$1|$2|$3|$4"); }
ask 'Which files does a program open?' 'print it.tape --filter "op in {open, openat}"' 'conf\.ini' 'conf\.ini'
ask 'Which file was not found?' 'print it.tape --filter "errno = ENOENT"' 'missing\.ini.*ENOENT' 'missing\.ini.*(ENOENT|No such file| -?2 )'
ask 'Which process deleted a file?' 'print it.tape --filter "op in {unlink, unlinkat}"' '^[0-9]+ .*unlink.*renamed\.txt' '^(\[pid +)?[0-9]+.*unlink.*renamed\.txt'
ask 'From which name to which was it renamed?' 'print it.tape --filter "op in {rename, renameat, renameat2}"' 'victim\.txt.*renamed\.txt' 'rename.*victim\.txt.*renamed\.txt|MOVED_TO renamed\.txt|> .*/renamed\.txt'
ask 'Which bytes were written?' 'print it.tape --filter "op = write"' 'secret-bytes-4711' 'write.*secret-bytes-4711'
ask 'Which bytes were read?' 'print it.tape --filter "op = read"' 'value-of-config-42' 'read.*value-of-config-42'
ask 'Which file is behind a descriptor?' 'print it.tape --filter "op = write"' 'write\([0-9]+<[^>]*filler\.bin' 'write\([0-9]+<[^>]*filler\.bin|write.*fd:? [0-9]+.*filler\.bin|: C?W.* .*filler\.bin'
ask 'Which file got the most bytes?' 'top --tape it.tape --by file --sort bytes --plain' 'filler\.bin' '-'
ask 'At which offset was it written?' 'print it.tape --json --filter "op = write and path glob *filler.bin"' '"offset":12288' '(lseek|pwrite).*12288'
ask 'How long did fsync take?' 'print it.tape --filter "op = fsync"' 'fsync\(.*<[0-9.]+>' 'fsync\(.*<[0-9.]+>|\( *[0-9.]+ ms\).*fsync'
ask 'Which programs ran, with which arguments?' 'ps it.tape' 'child-arg-77' 'child-arg-77'
ask 'With which status did a child end?' 'ps it.tape' ' 7 .*child-arg-77' 'exited with 7|exited \(status 7\)|exit_group\((status|error_code)?:? ?7'
ask 'Which signal ended a child?' 'print it.tape --filter "signal = SIGTERM"' 'SIGTERM' 'killed by SIGTERM|SIGTERM|[0-9]+ +sh +15 '
ask 'To which address did it connect?' 'print it.tape --filter "op = connect"' '127\.0\.0\.1' 'connect.*127\.0\.0\.1|127\.0\.0\.1 +9'
ask 'What is the full name of a relative one?' 'print it.tape --json --filter "op in {unlink, unlinkat}"' '"abs":"[^"]*/tree/renamed\.txt"' 'AT_FDCWD</[^>]*/tree>, "renamed\.txt|/tree/ [A-Z_,]+ renamed\.txt|/tree/renamed\.txt'
ask 'How did the calls divide by operation?' 'stat it.tape' 'openat' '^ *[0-9.]+ +[0-9.]+ .*openat|^ +openat +[0-9]+ +[0-9]+|^@syscall\[.*\]: [0-9]+'
ask 'What differs between two runs?' 'diff it.tape it2.tape' 'calls' '-'
ask 'What would the same calls do on another disk?' 'replay it.tape --into again --verify' 'calls made' '-'
ask 'Can it be shared without names?' 'anonymise it.tape anon.tape --keys keys --json' 'as_recorded' '-'
ask 'Which disk request took how long?' 'print disk.tape --filter "op = block_write"' 'block_write\(.*/filler\.bin.*<[0-9.]+>$' '^[0-9]+ +[a-z]+[0-9a-z]* +[a-z]+ +[0-9]+ +[0-9]+$'

table() {
	printf '| question |'; printf ' %s |' "${tools[@]}"; printf '\n|---|'; printf -- '---|%.0s' "${tools[@]}"; printf '\n'
	local q name command mine others t got
	for q in "${questions[@]}"; do
		IFS='|' read -r name command mine others <<<"${q//\\|/$'\x01'}"
		others=${q#"$name|$command|$mine|"}
		printf '| %s |' "$name"
		for t in "${tools[@]}"; do
			got=–
			if [ -n "${why[$t]}" ]; then
				got='·'
			elif [ "$t" = iotape ]; then
				[ "$command" = - ] || { eval "'$iotape' $command" 2>/dev/null | grep -qE -- "$mine" && got=yes; }
			elif [ "$others" != - ] && grep -qE -- "$others" "$t.out"; then
				got=yes
			fi
			printf ' %s |' "$got"
		done
		printf '\n'
	done
	printf '| *elapsed time, without a tool = 1* |'
	for t in "${tools[@]}"; do
		[ -n "${why[$t]}" ] && printf ' · |' || printf ' %s |' "$(awk "BEGIN{printf \"%.1f\", ${cost[$t]}/$plain}")"
	done
	printf '\n'
	for t in "${tools[@]}"; do
		[ -z "${why[$t]}" ] || printf '\n%s: %s.' "$t" "${why[$t]}"
	done
	printf '\n'
}
table >table
cat table
if [ -n "$page" ]; then
	awk '/^<!-- end -->$/ {skip=0} !skip {print}
		/^<!-- table -->$/ {print ""; while ((getline line <"table") > 0) print line; print ""; skip=1}' "$page" >page
	cat page >"$page"
fi

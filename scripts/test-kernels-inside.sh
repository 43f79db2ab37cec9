#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test-kernels-inside.sh BIN [BACKEND...]: what test-kernels.sh runs in each machine, with the
# programs in BIN. It prints a line for each thing that it tries: ok or FAIL, what, and why. The
# kernel cannot have the back ends; then the line says no, and what is missing.
cd "$(dirname "$0")/.." || exit 1
bin=$1 tests=$PWD/record/capture/ebpf
shift
without=" $* "
work=$(mktemp -d) && cd "$work" || exit 1
echo "KERNEL $(uname -r)"

# lacks BACKEND: the kernel cannot have it.
lacks() { [[ $without = *" $1 "* ]]; }

# try WHAT COMMAND...: runs a command of this script, whose last line of output is the reason.
try() {
	local what=$1 why
	shift
	if why=$("$@" 2>&1); then
		printf 'ok\t%s\n' "$what"
	else
		printf 'FAIL\t%s\t%s\n' "$what" "$(tail -1 <<<"$why" | cut -c 1-200)"
	fi
}

cat >work.sh <<-'S'
	mkdir d && cat /etc/passwd >d/a && dd if=/dev/zero of=d/b bs=1M count=4 2>/dev/null && cp d/b d/c
	ls -l d >d/list; /bin/echo "$(head -c 100000 /dev/zero | tr '\0' x)" >d/long; rm d/a
	command -v python3 >/dev/null && python3 vectors.py
	[ -e stores.py ] && python3 stores.py
	true
S
cat >vectors.py <<-'P'
	import os
	os.writev(os.open('d/w', os.O_CREAT | os.O_WRONLY), [b'x' * 70000, b'y' * 5, b'z' * 100000])
P
cat >stores.txt <<-'P'
	import mmap
	f = open('d/m', 'w+b'); f.truncate(65536)
	m = mmap.mmap(f.fileno(), 65536); m[100:200] = b'q' * 100; m.flush()
P

programs_load() { cd "$tests" && "$bin/ebpf.test" -test.run 'TestAccepted$'; }

# whole TAPE: nothing is lost, and a replay agrees.
whole() {
	"$bin/iotape" stat "$1" >stat.out || { cat stat.out; return 1; }
	grep -q 'nothing lost' stat.out || { sed -n '/quality/p' stat.out; return 1; }
	"$bin/iotape" replay "$1" --into "$1.replay" --verify >replay.out 2>&1 && return
	tail -1 replay.out
	return 1
}
recorded() {
	rm -rf d stores.py
	command -v python3 >/dev/null && cp stores.txt stores.py
	"$bin/iotape" record --backend "$1" --no-index -o "$1.tape" -- sh work.sh >record.out 2>&1 ||
		{ tail -1 record.out; return 1; }
	whole "$1.tape"
}

# beside COMMAND...: runs it while something is done again and again.
beside() {
	(while :; do cat /etc/passwd >/dev/null; sleep 0.2; done) &
	local busy=$!
	BUSY=$busy "$@"
	local rc=$?
	kill $busy
	wait $busy 2>/dev/null
	return $rc
}
# has_reads TAPE: the file that "beside" reads is in it, with content.
has_reads() {
	"$bin/iotape" print "$1" >print.out 2>&1 || { tail -1 print.out; return 1; }
	grep -q 'read.*root:x:0:0' print.out || { echo "no read of /etc/passwd among $(wc -l <print.out) calls"; return 1; }
}
# until_seen SECONDS COMMAND...: waits for a command to succeed: an emulated processor is slow.
until_seen() {
	local seconds=$1
	shift
	for _ in $(seq "$seconds"); do
		"$@" && return
		kill -0 "$RUNNING" 2>/dev/null || return 1
		sleep 1
	done
	return 1
}
# interrupted: ends what runs. A shell without job control has its background programs ignore SIGINT.
interrupted() {
	kill -TERM "$RUNNING" 2>/dev/null
	wait "$RUNNING"
}
record_running() { # NAME FLAGS...
	local tape=$1.tape
	shift
	"$bin/iotape" record --no-index -o "$tape" "$@" >running.out 2>&1 &
	RUNNING=$!
	until_seen 300 grep -q '^iotape: recording' running.out && sleep 5
	interrupted || { tail -1 running.out; return 1; }
	has_reads "$tape"
}
all() { record_running all --all; }
pid() { record_running pid --pid "$BUSY"; }
cgroup() {
	mkdir /sys/fs/cgroup/tried && echo "$BUSY" >/sys/fs/cgroup/tried/cgroup.procs || return 1
	record_running cgroup --cgroup /sys/fs/cgroup/tried
}
last() {
	"$bin/iotape" record --backend ebpf --last 60s --dump-on end -o last.tape --no-index -- cat /etc/passwd >last.out 2>&1 ||
		{ tail -1 last.out; return 1; }
	has_reads last-1.tape
}
top() {
	"$bin/iotape" top --all >top.out 2>&1 &
	RUNNING=$!
	until_seen 120 grep -q openat top.out
	interrupted || { tail -1 top.out; return 1; }
	grep -q openat top.out || { echo "no openat was counted: $(tail -1 top.out)"; return 1; }
}
spooled() { [ -n "$(find spool -type f -size +4k 2>/dev/null)" ]; }
agent() {
	"$bin/iotape-agent" keygen -o a.nk >/dev/null &&
		printf 'host="h"\ncollectors=["nats://127.0.0.1:4222"]\nkey="%s/a.nk"\nspool="%s/spool"\n' "$work" "$work" >agent.toml &&
		"$bin/iotape-agent" check --config agent.toml || return 1
	"$bin/iotape-agent" --config agent.toml >agent.out 2>&1 &
	RUNNING=$!
	until_seen 60 spooled
	kill -TERM "$RUNNING"
	wait "$RUNNING"
	spooled || { tail -1 agent.out; return 1; }
}

# namespace: the recorder has a pid namespace of its own, as in a container.
namespace() {
	rm -rf d stores.py namespace.tape
	unshare -p -f --mount-proc "$bin/iotape" record --backend ebpf --no-index -o namespace.tape -- sh work.sh >namespace.out 2>&1 ||
		{ tail -1 namespace.out; return 1; }
	whole namespace.tape
}
# stacks: the stack of a call leads to the program's own code.
stacks() {
	"$bin/iotape" record --backend ebpf --stacks='op = openat' --no-index -o stacks.tape -- cat /etc/passwd >stacks.out 2>&1 ||
		{ tail -1 stacks.out; return 1; }
	"$bin/iotape" print -k stacks.tape >stacks.out 2>&1 && grep -q '^ > .*/cat' stacks.out ||
		{ echo "no frame of cat among $(wc -l <stacks.out) lines"; return 1; }
}
# refused COMMAND...: it fails, and says in one line what the kernel lacks.
refused() {
	"$@" >refused.out 2>&1 && { echo "it works, but this test expects that it cannot"; return 1; }
	grep -qE 'Linux [0-9]+\.[0-9]+|needs|cannot' refused.out || { echo "it does not say what is missing: $(tail -1 refused.out)"; return 1; }
}
# missing WHAT COMMAND...: like try, for what this kernel cannot have.
missing() {
	local what=$1 why
	shift
	if why=$(refused "$@" 2>&1); then
		printf 'no\t%s\t%s\n' "$what" "$(grep -oE -m1 '[^:(]*\(Linux [0-9.]+\)' refused.out || head -1 refused.out | cut -c 1-150)"
	else
		printf 'FAIL\t%s\t%s\n' "$what" "$(tail -1 <<<"$why" | cut -c 1-200)"
	fi
}
# any: record takes a back end that can be had.
any() {
	rm -rf d stores.py any.tape
	"$bin/iotape" record --no-index -o any.tape -- sh work.sh >any.out 2>&1 || { tail -1 any.out; return 1; }
	whole any.tape
}

try "\`record\`, \`replay --verify\`" any
for backend in ebpf interpose ptrace; do
	what="\`record --backend $backend\`, \`replay --verify\`"
	if lacks $backend; then
		missing "$what" "$bin/iotape" record --backend $backend -o refused.tape -- true
	else
		try "$what" recorded $backend
	fi
done
if lacks ebpf; then
	missing "\`record --all\`" "$bin/iotape" record --all --duration 1s -o refused-all.tape
	try "\`record --pid\`" beside pid
	missing "\`top --all\`" "$bin/iotape" top --all --duration 1s
else
	try "every eBPF program is accepted" programs_load
	try "\`record --all\`" beside all
	try "\`record --pid\`" beside pid
	try "\`record --cgroup\`" beside cgroup
	try "\`record --last\`" last
	try "\`record\` in a pid namespace" namespace
	try "\`record --stacks\`" stacks
	try "\`top --all\`" beside top
	try "\`iotape-agent\`" beside agent
fi
echo DONE

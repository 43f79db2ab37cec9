#!/bin/bash
# make.sh IOTAPE DIR: how the samples beside this script were made, once, with IOTAPE of version
# 0.1.0, as root. It makes others into DIR; those of a released version are never made again.
set -eux
iotape=$(realpath "$1") here=$(realpath "$(dirname "$0")")
mkdir -p "$2" && cd "$2"
out=$PWD
gcc -O1 -static -o program "$here/program.c"
fresh() { cd "$out" && rm -rf w && mkdir w && printf 'initial\n' >w/in && cd w; }
run() { fresh && "$iotape" record --no-index --user root "$@" -- ../program </dev/null >/dev/null 2>&1; }

# Streams of the back ends, and what they keep of content; a tape with snapshot and annotations.
run --keep-stream --wakeups --snapshot . -o ../sample.tape
"$iotape" annotate ../sample.tape
run --keep-stream --backend ptrace --content read=hash,write=head:4 -o ../ptrace.tape
run --keep-stream --content signature -o ../signature.tape
fresh
mkdir ../at
"$iotape" mount . ../at --no-index --keep-stream -o ../mount.tape &
until mountpoint -q ../at; do sleep 0.1; done
(cd ../at && ../program)
umount ../at
wait
cd "$out"
rm -rf ptrace.tape signature.tape mount.tape w at program

# A piped stream, a tape with values that were replaced, and the text of a tape.
"$iotape" keygen -o reader.key >recipient
"$iotape" keygen --checksum -o sum.key
"$iotape" pipe --apply zstd:3,checksum:@sum.key,encrypt:@recipient,block:4K -o sample.piped sample.stream
"$iotape" anonymise sample.tape anonymised.tape --keys anonymised.keys --no-index
"$iotape" script sample.tape -o sample.script

# The runs of discover, in which the one node is held.
"$iotape" discover -o discovered.tape --runs runs --nodes 1 --prepare 'rm -rf d' -- /bin/sh -c 'echo 1 >d; cat d' >/dev/null
rm -rf discovered.tape d

# The spool of an agent that reaches no collector, and what another sent to one. The files were
# taken of /tmp/fl: spool/, and data/staging/ as staging/.
agent=$(dirname "$iotape")/iotape-agent
mkdir -p /tmp/fl/w && cd /tmp/fl
gcc -O1 -static -o program "$here/program.c"
printf 'initial\n' >w/in
"$agent" keygen -o agent.nk >public
"$iotape" collector enrol db7 --data data --public "$(cat public)"
"$iotape" collector --data data --listen 127.0.0.1:14222 --page - &
for port in 14222 14223; do
	printf 'host = "db7"\ncollectors = ["nats://127.0.0.1:%s"]\nkey = "/tmp/fl/agent.nk"\nspool = "/tmp/fl/spool"\n' $port >agent.toml
	printf '[record]\ncommand = ["/bin/sh", "-c", "cd /tmp/fl/w && exec ../program"]\ncontent = "full"\n' >>agent.toml
	timeout 15 "$agent" --config agent.toml || true
	rm -rf w/d
done
kill %%

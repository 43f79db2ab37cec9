#!/bin/bash
# make.sh PROGRAMS DIR: how fleet.tar.gz was made, once, with the iotape and iotape-agent of version 0.1.0 in PROGRAMS: the data
# of a collector and the spools of two agents in the middle of everything. Files of a released version are never made again.
set -eux
old=$(realpath "$1")
mkdir -p "$2" && cd "$2"
mkdir agents
for host in h0 h1; do
	"$old/iotape-agent" keygen -o $host.nk >$host.pub
	"$old/iotape" collector enrol $host --data data --public "$(cat $host.pub)"
	printf 'host = "%s"\ncollectors = ["nats://127.0.0.1:14222"]\nkey = "%s"\nspool = "%s"\n[stream]\nsize = "64K"\n[record]\nsynthetic = "rate=100,size=50"\n' \
		$host "$PWD/$host.nk" "$PWD/$host.spool" >agents/$host.toml
done
"$old/iotape-agent" keygen -o gone.nk >gone.pub
"$old/iotape" collector enrol gone --data data --public "$(cat gone.pub)"
"$old/iotape" collector revoke gone --data data
collector() { "$old/iotape" collector --data data --listen 127.0.0.1:14222 "$@" >>log 2>&1 & c=$!; sleep 2; }
simulate() { "$old/iotape-agent" simulate agents --stop-wait 2s >>log 2>&1 & a=$!; }
stop() { kill -TERM $a; timeout 20 tail --pid=$a -f /dev/null; }
# Streams that are finished, a tape that could not be stored.
collector --page -
simulate; sleep 3; stop; sleep 1
touch full
timeout 60 "$old/iotape" archive --data data --to full/tapes --settle -1s >>log 2>&1 || true
# Streams that are not finished, what the collector has not taken of the broker, and what is in spools.
simulate; sleep 2
kill -9 $c; wait $c || true
collector --broker-only; sleep 2
kill -9 $c; wait $c || true
sleep 2; stop
rm -f full log
tar -czf fleet.tar.gz --owner=0 --group=0 --sort=name data h0.nk h1.nk gone.nk h0.spool h1.spool

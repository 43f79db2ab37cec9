#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench-flow.sh [EVENTS]: how long iotape flow takes for so many events (10,000,000) of two
# hosts that move records of 1 KiB, 5 % of them different: the order, the similarity, the
# findings, in seconds, and the most memory. Makes the tapes first, which needs some 1.1 GB
# beneath $TMPDIR. Then recall and precision of similar pairs, beside CAT's parameters, and
# the clocks of Falcon's log of ZooKeeper, beside its solver z3 if that is installed (also
# alone: go run ./bench/flowpeers LOG). Needs a bin/iotape, and go.
set -eu -o pipefail
cd "$(dirname "$0")/.."
events=${1:-10000000}
d=$(mktemp -d "${TMPDIR:-/tmp}/iotape-bench-flow.XXXXXX")
trap 'rm -rf "$d"' EXIT
go run ./bench/flowtape -events "$events" "$d"
python3 - "$d" "$events" <<'PYTHON'
import os, re, subprocess, sys
d, events = sys.argv[1], int(sys.argv[2])
p = subprocess.Popen(["bin/iotape", "flow", d + "/client.tape", d + "/server.tape", "--timing", "--numbers"],
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
out, err = p.communicate()
if p.returncode:
    sys.exit(err)
import resource
use = resource.getrusage(resource.RUSAGE_CHILDREN)
t = {k: float(v) for k, v in re.findall(r"iotape: (\w+): ([0-9.]+) s", err)}
n = {name: int(v) for v, name in re.findall(r"^\s*(\d+)\s+(\w+)", out, re.M)}
part = events / 10e6
print(f"{n['events']:,} events, {n['bytes'] / 1e9:.2f} GB moved, {n['contents']:,} different contents, {n['changed']:,} changed ones found")
print("| step | s | goal |\n|---|--:|--:|")
print(f"| order | {t['order']:.1f} | {30 * part:.0f} |")
print(f"| moves | {t['moves']:.1f} | |")
print(f"| contents and similarity | {t['contents'] + t['similarity']:.1f} | {60 * part:.0f} |")
print(f"| findings | {t['findings']:.1f} | |")
print(f"| most memory, GiB | {use.ru_maxrss / 2**20:.2f} | 2 |")
print(f"| CPU time, s | {use.ru_utime + use.ru_stime:.1f} | |")
PYTHON
# Beside those who did it before: pairs against all pairs, and z3 on Falcon's log.
go run ./bench/flowpeers causal/happens/testdata/zookeeper.log.gz

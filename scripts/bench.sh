#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench.sh [FLAG...]: measures what recording costs, with bin/iotape; see
# bench/run --help for the flags. Without any, everything is measured and the
# tables are also written into docs/performance.md.
set -eu -o pipefail
cd "$(dirname "$0")/.."
[ -x bin/iotape ] || { echo "bench: bin/iotape is missing: make build" >&2; exit 2; }
go build -buildvcs=false -o bin/bench ./bench/run
[ $# -gt 0 ] || set -- --json bin/bench.json --markdown docs/performance.md
exec bin/bench "$@"

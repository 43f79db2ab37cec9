#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# bench-catalogue.sh [TAPES]: how long finding takes in a catalogue of so many tapes
# (100,000 if not given), each with 60 operations, of 300 hosts over three years. The rows
# are made up; they are written, compacted by month, and found with the program's own code,
# opening the catalogue each time as the program does. Budget: a second for the first line.
#
#   host  host == "db7" && ops.fsync > 1e6 && duration > 1h
#   all   ops.fsync > 2.9e6 and duration > 23h         (of every host)
#   text  hot contains t77.ibd                         (a list of names in every row)
set -eu -o pipefail
cd "$(dirname "$0")/.."
CATALOGUE_ROWS=${1:-100000} go test ./store/catalogue -run '^$' -bench '^BenchmarkFind$' -benchtime 5x -timeout 60m

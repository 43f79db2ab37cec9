#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sizes.sh [ENTRIES]: how large a recording of LevelDB's db_bench is, with all content,
# as a tape, as DataSeries and as strace's text. Needs what scripts/setup.sh --bench
# makes, and strace.
set -eu -o pipefail
cd "$(dirname "$0")/.."
iotape=$PWD/bin/iotape bench=$PWD/bin/db_bench entries=${1:-120000}
dir=$(mktemp -d /var/tmp/iotape-sizes.XXXXXX)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
export LEVELDB_MMAP_LIMIT=0
phases=fillseq,fillsync,fillrandom,overwrite,readrandom,readseq,readreverse,compact,readrandom,readseq

"$iotape" record --no-index --keep-stream -o x.tape -- "$bench" --db=db --num="$entries" --benchmarks=$phases >/dev/null 2>bench.log
rm -rf db
strace -f -ttt -T -y -s 100000000 -o x.strace "$bench" --db=db --num="$entries" --benchmarks=$phases >/dev/null 2>bench.log
rm -rf db

bytes() { du -sb --apparent-size "$1" | cut -f1; }
tape=$(bytes x.tape)
row() { printf '| %s | %s | %.1f |\n' "$1" "$(numfmt --to=iec-i --suffix=B --format=%.1f "$2")" "$(echo "$2 / $tape" | bc -l)"; }
moved=$("$iotape" stat --json x.tape | grep -m1 moved_bytes | tr -dc 0-9)
events=$("$iotape" stat --json x.tape | grep -m1 '"events"' | tr -dc 0-9)

echo "$events events"
echo
echo "| form | size | times the tape |"
echo "|---|---:|---:|"
row "tape" "$tape"
"$iotape" index x.tape
row "tape with its Parquet files" "$(bytes x.tape)"
row "the bytes that calls moved" "$moved"
row "stream, before sealing" "$(bytes x.stream)"
for codec in none lzf zlib lz4hc; do
	"$iotape" convert --codec $codec x.tape x.ds >/dev/null || [ $? = 1 ]
	row "DataSeries, $codec" "$(bytes x.ds)"
	rm x.ds
done
row "strace -f -ttt -T -y, all bytes" "$(bytes x.strace)"
row "the same, zstd" "$(zstd -qc x.strace | wc -c)"

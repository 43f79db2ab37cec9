#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build-dbbench.sh DEST: puts LevelDB's own benchmark program, db_bench, at DEST.
#
# Debian has no package with it, so it is built from Debian's source package:
# db_bench.cc and the whole of LevelDB as shipped, with snappy, and one file of
# ours that lets an environment variable choose how tables are read. Nothing is
# installed. The result is kept in ~/.cache/iotape, so that only the first call
# builds.
set -eu -o pipefail
[ $# -eq 1 ] || { echo "usage: $0 DEST" >&2; exit 2; }
dest=$(realpath -m "$1")
here=$(cd "$(dirname "$0")" && pwd)
ours=$here/../bench/src/leveldb_mmap.cc
cache=${XDG_CACHE_HOME:-$HOME/.cache}/iotape
# What is built changes with our file, and so does the name.
built=$cache/db_bench-bookworm-$(uname -m)-$(sha256sum <"$ours" | cut -c1-8)
mkdir -p "$cache" "$(dirname "$dest")"

exec 9>"$cache/db_bench.lock"
flock 9
if [ ! -x "$built" ]; then
	for p in dpkg-deb g++ tar; do
		command -v "$p" >/dev/null || { echo "build-dbbench: $p is missing; run scripts/setup.sh on a Debian machine" >&2; exit 1; }
	done
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	"$here/debian-download.sh" "$tmp" src:leveldb libsnappy-dev libgmock-dev libgtest-dev
	cp "$ours" "$tmp"
	cd "$tmp"
	for d in ./*.deb; do dpkg-deb -x "$d" root; done
	mkdir src
	tar -C src --strip-components=1 -xf leveldb_*.orig.tar.*
	cd src
	# db_bench needs of the unit-test helper only the random strings; the header
	# of that helper mentions googletest, hence its headers above.
	objs=$(ls db/*.cc table/*.cc util/*.cc helpers/memenv/*.cc benchmarks/db_bench.cc |
		grep -vE '_test\.cc$|_windows|db/leveldbutil\.cc|util/testutil\.cc')
	cp ../leveldb_mmap.cc .
	flags="-std=c++17 -O2 -DNDEBUG -pthread -DLEVELDB_PLATFORM_POSIX=1 -DHAVE_FDATASYNC=1 -DHAVE_O_CLOEXEC=1 -DHAVE_FULLFSYNC=0 -DHAVE_CRC32C=0 -DHAVE_SNAPPY=1 -I. -Iinclude -I../root/usr/include"
	{ for f in $objs util/testutil.cc leveldb_mmap.cc; do echo "$f"; done; } |
		xargs -P "$(nproc)" -I{} sh -c 'g++ '"$flags"' -c {} -o "$(echo {} | tr / _).o"'
	g++ -O2 -pthread ./*.o "$(find ../root -name libsnappy.a)" -o "$built.new"
	mv "$built.new" "$built"
fi
cp "$built" "$dest.new$$"
mv "$dest.new$$" "$dest"
echo "db_bench (LevelDB of Debian bookworm): $dest"

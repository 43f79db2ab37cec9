#!/bin/bash
# build-dbbench.sh DEST: puts LevelDB's own benchmark program, db_bench, at DEST.
#
# Debian has no package with it, so it is built from Debian's source package:
# db_bench.cc and the whole of LevelDB as shipped, with snappy. Nothing is
# installed and no file of the system is changed (apt works on private lists in
# a temporary directory; root is not needed). The result is kept in
# ~/.cache/iotape, so that only the first call builds.
set -eu -o pipefail
[ $# -eq 1 ] || { echo "usage: $0 DEST" >&2; exit 2; }
dest=$(realpath -m "$1")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/iotape
suite=bookworm
built=$cache/db_bench-$suite-$(uname -m)
mkdir -p "$cache" "$(dirname "$dest")"

exec 9>"$cache/db_bench.lock"
flock 9
if [ ! -x "$built" ]; then
	for p in apt-get dpkg-deb g++ tar; do
		command -v "$p" >/dev/null || { echo "build-dbbench: $p is missing; run scripts/setup.sh on a Debian machine" >&2; exit 1; }
	done
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	cd "$tmp"
	mkdir -p lists/partial cache/archives/partial
	for kind in deb deb-src; do
		echo "$kind [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main"
	done >src.list
	apt() {
		apt-get -qq -o Dir::Etc::SourceList="$tmp/src.list" -o Dir::Etc::SourceParts=/dev/null \
			-o Dir::State::Lists="$tmp/lists" -o Dir::Cache="$tmp/cache" -o APT::Sandbox::User= "$@"
	}
	if ! { apt update && apt source --download-only leveldb && apt download libsnappy-dev libgmock-dev libgtest-dev; } >log 2>&1; then
		sed 's/^/build-dbbench: /' log >&2
		exit 1
	fi
	for d in ./*.deb; do dpkg-deb -x "$d" root; done
	mkdir src
	tar -C src --strip-components=1 -xf leveldb_*.orig.tar.*
	cd src
	# db_bench needs of the unit-test helper only the random strings; the header
	# of that helper mentions googletest, hence its headers above.
	objs=$(ls db/*.cc table/*.cc util/*.cc helpers/memenv/*.cc benchmarks/db_bench.cc |
		grep -vE '_test\.cc$|_windows|db/leveldbutil\.cc|util/testutil\.cc')
	flags="-std=c++17 -O2 -DNDEBUG -pthread -DLEVELDB_PLATFORM_POSIX=1 -DHAVE_FDATASYNC=1 -DHAVE_O_CLOEXEC=1 -DHAVE_FULLFSYNC=0 -DHAVE_CRC32C=0 -DHAVE_SNAPPY=1 -I. -Iinclude -I../root/usr/include"
	{ for f in $objs util/testutil.cc; do echo "$f"; done; } |
		xargs -P "$(nproc)" -I{} sh -c 'g++ '"$flags"' -c {} -o "$(echo {} | tr / _).o"'
	g++ -O2 -pthread ./*.o "$(find ../root -name libsnappy.a)" -o "$built.new"
	mv "$built.new" "$built"
fi
cp "$built" "$dest.new$$"
mv "$dest.new$$" "$dest"
echo "db_bench (LevelDB of Debian $suite): $dest"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fetch-lua.sh DEST: puts the original sources of Lua, as Debian ships them, at
# DEST: 33 files of real C that the benchmark compiles. They are kept in
# ~/.cache/iotape, so that only the first call downloads.
set -eu -o pipefail
[ $# -eq 1 ] || { echo "usage: $0 DEST" >&2; exit 2; }
dest=$(realpath -m "$1")
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/iotape
kept=$cache/lua5.4-bookworm.tar.gz
mkdir -p "$cache" "$(dirname "$dest")"
if [ ! -f "$kept" ]; then
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	"$here/debian-download.sh" "$tmp" src:lua5.4
	cp "$tmp"/lua5.4_*.orig.tar.gz "$kept.new$$"
	mv "$kept.new$$" "$kept"
fi
cp "$kept" "$dest.new$$"
mv "$dest.new$$" "$dest"
echo "Lua 5.4 (sources of Debian bookworm): $dest"

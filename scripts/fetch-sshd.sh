#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fetch-sshd.sh DEST: puts Debian's sshd at DEST. The package is not installed: that would
# have this machine let people in. It is kept in ~/.cache/iotape, so that only the first
# call downloads.
set -eu -o pipefail
[ $# -eq 1 ] || { echo "usage: $0 DEST" >&2; exit 2; }
dest=$(realpath -m "$1")
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/iotape
kept=$cache/sshd-bookworm-$(uname -m)
mkdir -p "$cache" "$(dirname "$dest")"
if [ ! -x "$kept" ]; then
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	"$here/debian-download.sh" "$tmp" openssh-server
	dpkg-deb --fsys-tarfile "$tmp"/openssh-server_*.deb | tar -x -C "$tmp" ./usr/sbin/sshd
	mv "$tmp/usr/sbin/sshd" "$kept"
fi
cp "$kept" "$dest.new$$"
mv "$dest.new$$" "$dest"
echo "sshd of Debian bookworm: $dest"

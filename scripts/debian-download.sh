#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# debian-download.sh DIR [src:]PACKAGE...: downloads Debian packages, or with src:
# the original sources, as files into DIR.
#
# Nothing is installed and no file of the system is changed: apt works on private
# lists in a temporary directory, and root is not needed.
set -eu -o pipefail
[ $# -ge 2 ] || { echo "usage: $0 DIR [src:]PACKAGE..." >&2; exit 2; }
suite=bookworm
command -v apt-get >/dev/null || { echo "debian-download: apt-get is missing; this needs a Debian machine" >&2; exit 1; }
cd "$1"
shift

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/lists/partial" "$tmp/cache/archives/partial"
for kind in deb deb-src; do
	echo "$kind [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main"
done >"$tmp/src.list"
apt() {
	apt-get -qq -o Dir::Etc::SourceList="$tmp/src.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$tmp/lists" -o Dir::Cache="$tmp/cache" -o APT::Sandbox::User= "$@" >>"$tmp/log" 2>&1 ||
		{ sed 's/^/debian-download: /' "$tmp/log" >&2; exit 1; }
}
apt update
for p; do
	case $p in
	src:*) apt source --download-only "${p#src:}" ;;
	*) apt download "$p" ;;
	esac
done

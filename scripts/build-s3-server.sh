#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build-s3-server.sh DEST: puts the S3 server that the archive is tested with at DEST:
# Versity's gateway, which serves a directory. It is no part of iotape's own module. The
# result is kept in ~/.cache/iotape, so that only the first call builds (two minutes).
set -eu -o pipefail
[ $# -eq 1 ] || { echo "usage: $0 DEST" >&2; exit 2; }
version=v1.8.0
dest=$(realpath -m "$1")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/iotape
built=$cache/versitygw-$version-$(uname -m)
mkdir -p "$cache" "$(dirname "$dest")"

exec 9>"$cache/versitygw.lock"
flock 9
if [ ! -x "$built" ]; then
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	(cd "$work" && GOBIN=$work nice go install "github.com/versity/versitygw/cmd/versitygw@$version")
	mv "$work/versitygw" "$built"
fi
[ "$dest" -ef "$built" ] || cp --reflink=auto "$built" "$dest.new" && mv "$dest.new" "$dest"
echo "versitygw $version is at $dest"

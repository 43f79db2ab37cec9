#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fetch-icebird.sh DIR: installs icebird, a reader of Iceberg tables for Node.js, into DIR. The
# tests of the lake (store/lake) read tables with it. It is no part of iotape.
set -eu -o pipefail
version=0.3.1
dir=$1
installed=$(sed -n 's/.*"version": *"\(.*\)".*/\1/p' "$dir/node_modules/icebird/package.json" 2>/dev/null || true)
if [ "$installed" = "$version" ]; then
	echo "icebird $version is in $dir"
	exit 0
fi
mkdir -p "$dir"
npm install --silent --no-audit --no-fund --no-save --prefix "$dir" "icebird@$version"
echo "installed icebird $version in $dir"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# fetch-trace-engine.sh DIR: installs trace_engine, the reader of Chrome DevTools for traces, into DIR. The
# tests of format/chrometrace read what is written with it. It is no part of iotape.
set -eu -o pipefail
version=0.0.65
dir=$1
installed=$(sed -n 's/.*"version": *"\(.*\)".*/\1/p' "$dir/node_modules/@paulirish/trace_engine/package.json" 2>/dev/null || true)
if [ "$installed" = "$version" ]; then
	echo "trace_engine $version is in $dir"
	exit 0
fi
mkdir -p "$dir"
npm install --silent --no-audit --no-fund --no-save --prefix "$dir" "@paulirish/trace_engine@$version"
echo "installed trace_engine $version in $dir"

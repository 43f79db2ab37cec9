#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# vulncheck.sh [PROGRAM...]: asks the database of Go's known vulnerabilities (vuln.go.dev) about what is
# linked into the programs, those of make build if none is given. Status 3: some are
# affected. Where the database cannot be had, VULNDB is the address of a copy: file:///DIR, in
# which vulndb.zip is unpacked. Status 2: there is no database.
set -eu -o pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- bin/iotape bin/iotape-full bin/iotape-agent
db=${VULNDB:-https://vuln.go.dev}
case $db in
file://*) found=$([ -f "${db#file://}/index/modules.json" ] && echo yes || true) ;;
*) found=$(curl -fsS -m 20 -o /dev/null "$db/index/modules.json.gz" 2>/dev/null && echo yes || true) ;;
esac
if [ -z "$found" ]; then
	echo "vulncheck: the database $db cannot be had, so nothing was checked" >&2
	echo "vulncheck: get https://vuln.go.dev/vulndb.zip elsewhere, unpack it in DIR, and run VULNDB=file:///DIR make vulncheck" >&2
	exit 2
fi
(cd internal/tools && go build -buildvcs=false -o ../../bin/govulncheck golang.org/x/vuln/cmd/govulncheck)
status=0
for program in "$@"; do
	echo "vulncheck: $program"
	bin/govulncheck -db "$db" -mode binary "$program" || status=$?
done
exit $status

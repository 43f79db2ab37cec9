#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sqlite3 with a rollback journal, in its three ways to end one.
#
# usage: sqlite-journal.sh DIR prep|run
set -eu -o pipefail
umask 022
export LC_ALL=C TZ=UTC
cd "$1"

prep() { :; }

statements() {
	echo "PRAGMA synchronous=FULL; PRAGMA cache_size=50;"
	echo "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);"
	echo "BEGIN; WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<5000)"
	echo "INSERT INTO t SELECT x, printf(%s, x, hex(x*7919)), x*1.5 FROM n; COMMIT;" | sed "s/%s/'row %d %s'/"
	echo "CREATE INDEX i ON t(b);"
	for i in {1..20}; do echo "UPDATE t SET b=b||$i WHERE a%97=$i; DELETE FROM t WHERE a%509=$i;"; done
	echo "BEGIN; DELETE FROM t WHERE a>100; ROLLBACK;"
}

run() {
	{ echo "PRAGMA journal_mode=DELETE;"; statements; } | sqlite3 t.db >/dev/null
	sqlite3 t.db "PRAGMA journal_mode=PERSIST; UPDATE t SET c=c+1 WHERE a<400;" >/dev/null
	sqlite3 t.db "PRAGMA journal_mode=TRUNCATE; UPDATE t SET c=c+1 WHERE a<400; VACUUM; PRAGMA integrity_check;" >check
}

"$2"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sqlite3 with a write-ahead log: inserts, updates, rollback, recovery, checkpoint.
#
# usage: sqlite-wal.sh DIR prep|run
set -eu -o pipefail
umask 022
export LC_ALL=C TZ=UTC
cd "$1"

prep() { :; }

statements() {
	echo "PRAGMA synchronous=FULL; PRAGMA cache_size=20;"
	echo "CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);"
	echo "BEGIN; WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM n WHERE x<2000)"
	echo "INSERT INTO t SELECT x, printf(%s, x, hex(x*7919)), x*1.5 FROM n; COMMIT;" | sed "s/%s/'row %d %s'/"
	echo "CREATE INDEX i ON t(b);"
	for i in {1..20}; do echo "UPDATE t SET b=b||$i WHERE a%97=$i; DELETE FROM t WHERE a%509=$i;"; done
	echo "BEGIN; DELETE FROM t WHERE a>100; ROLLBACK;"
}

run() {
	{ echo "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=200;"; statements; } | sqlite3 t.db >/dev/null
	# A second session finds the log of a session that did not close, and recovers it.
	sqlite3 t.db ".dbconfig no_ckpt_on_close on" "INSERT INTO t(b) VALUES('left in the log');" >/dev/null
	sqlite3 t.db "SELECT count(*), sum(length(b)) FROM t;" >sum
	sqlite3 t.db "INSERT INTO t(b) VALUES('last'); PRAGMA wal_checkpoint(TRUNCATE); VACUUM; PRAGMA integrity_check;" >check
}

"$2"

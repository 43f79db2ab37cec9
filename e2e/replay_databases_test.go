// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"testing"

	"github.com/iotape/iotape/internal/testenv"
)

// TestReplayDatabases records database servers and libraries with several threads and
// processes, from the making of the database to its end, and replays them in every order.
func TestReplayDatabases(t *testing.T) {
	t.Parallel()
	leveldb := filepath.Join(testenv.ModuleRoot(t), "bin", "db_bench")
	runRows(t, []row{
		{name: "leveldb", needs: []string{leveldb}, run: `
			$ROOT/bin/db_bench --db=$PWD/db --threads=4 --num=1500 --value_size=200 --write_buffer_size=65536 --max_file_size=65536 \
				--benchmarks=fillrandom,overwrite,readrandom,deleterandom,compact,fillsync,readseq >/dev/null`},
		{name: "rocksdb", needs: []string{"/usr/bin/db_bench", "ldb"}, run: `
			/usr/bin/db_bench --db=$PWD/db --threads=4 --num=1500 --value_size=200 --write_buffer_size=65536 --target_file_size_base=65536 --max_background_jobs=4 \
				--benchmarks=fillrandom,overwrite,readrandom,deleterandom,compact,readseq,fillsync >/dev/null 2>&1
			ldb --db=$PWD/db scan --max_keys=5 --hex >scan`},
		{name: "postgres", as: "postgres", needs: []string{"setpriv", "psql"}, run: `
			PATH=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1):$PATH
			initdb -D db -A trust -U postgres -N --no-instructions --wal-segsize=1 >/dev/null
			pg_ctl -s -w -D db -l log -o "-k $PWD -c listen_addresses= -c shared_buffers=1MB -c checkpoint_timeout=30s -c max_wal_size=4MB -c dynamic_shared_memory_type=sysv" start
			pgbench -q -h $PWD -U postgres -i -s 1 postgres >/dev/null 2>&1
			pgbench -h $PWD -U postgres -c 4 -j 2 -t 25 postgres >/dev/null 2>&1
			psql -q -h $PWD -U postgres -c 'VACUUM FULL' -c 'CHECKPOINT' postgres
			pg_ctl -s -w -D db -m fast stop`},
		{name: "mariadb", as: "mysql", needs: []string{"setpriv", "mariadbd", "mariadb-install-db", "sysbench"}, run: `
			mkdir tmp; small="--no-defaults --tmpdir=$PWD/tmp --datadir=$PWD/db --innodb-log-file-size=4M --innodb-buffer-pool-size=8M"
			mariadb-install-db $small --auth-root-authentication-method=normal --skip-test-db >/dev/null 2>&1
			mariadbd $small --socket=$PWD/s --skip-networking --pid-file=$PWD/pid --log-bin=bin 2>log &
			until mariadb-admin -uroot -S s ping >/dev/null 2>&1; do sleep 0.1; done
			mariadb -uroot -S s -e 'CREATE DATABASE sbtest'
			bench="sysbench oltp_read_write --db-driver=mysql --mysql-user=root --mysql-socket=$PWD/s --tables=2 --table-size=300 --threads=4 --events=60 --time=0"
			$bench prepare >/dev/null; $bench run >/dev/null; $bench cleanup >/dev/null
			mariadb-admin -uroot -S s shutdown; wait`},
	})
}

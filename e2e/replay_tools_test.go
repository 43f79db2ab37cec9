// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"
)

// TestReplayTools records programs that people use on files, and those that test file
// systems, and replays each in every order.
func TestReplayTools(t *testing.T) {
	t.Parallel()
	runRows(t, slices.Concat(tools, fioRows(), stressRows(), runtimeRows()))
}

// runtimeRows are programs that use the file API of their run-time from one end to the other.
func runtimeRows() (rows []row) {
	// Compilers find their caches and settings at home.
	const home = `HOME=$(getent passwd "$(id -u)" | cut -d: -f6) `
	for _, r := range []row{
		{name: "java", needs: []string{"java", "javac"}, prep: `javac -d . $ROOT/e2e/testdata/runtimes/UseFiles.java`,
			run: `java -cp . UseFiles`},
		{name: "go", needs: []string{"go"}, prep: home + `GOFLAGS= go build -o files $ROOT/e2e/testdata/runtimes/files.go`, run: `./files`},
		{name: "node", needs: []string{"node"}, run: `node $ROOT/e2e/testdata/runtimes/files.js`},
		{name: "python", needs: []string{"/usr/bin/python3"}, run: `/usr/bin/python3 $ROOT/e2e/testdata/runtimes/files.py`},
		{name: "rust", needs: []string{"rustc"}, prep: home + `rustc -O -o files $ROOT/e2e/testdata/runtimes/files.rs`, run: `./files`},
	} {
		r.name += "-files"
		name := r.name
		for _, r.backend = range []string{"ebpf", "interpose"} {
			r.name = name + "/" + r.backend
			rows = append(rows, r)
		}
	}
	return rows
}

var tools = []row{
	{name: "coreutils", run: `
		mkdir s; seq 4000 >s/one; seq 100 >s/two; mkdir s/sub; echo x >s/sub/x
		cp -a s c1; cp -r --reflink=auto s c2; cp -al s hl; cp -as "$PWD/s" sym
		mv c1 m1; mv -n m1 m2; ln s/one x; ln -sf x y; ln -sfn s z
		split -n 5 -d s/one p.; cat p.* >joined; sort -S 64k --parallel=2 -T . -o sorted joined; sort -u -o joined joined
		dd if=joined of=dd1 bs=512 conv=notrunc,fsync seek=3 status=none
		dd if=joined of=dd2 bs=4k oflag=direct conv=sync,fdatasync status=none || true
		truncate -s +1M joined; truncate -s 100 sorted; install -D -m 751 s/one i/j/k; shred -n 1 -u p.00
		mktemp -p . XXXX >/dev/null; touch -d 2001-02-03T04:05:06.789 x; chmod -R g-r,o=X hl; chown -h 1:2 y; chgrp 3 x
		mkfifo ff; mknod nn c 1 3; rmdir --ignore-fail-on-non-empty i/j; tee a b c <x >/dev/null; tee -a a <x >/dev/null
		cp --sparse=always joined sp; cmp joined sp; rm -rf m2; find s -type f -size -2k -delete
		find hl -type f -print0 | xargs -0 -P 2 -n 1 sed -i s/1/one/
		mkdir -m 1777 st; comm <(sort a) <(sort b) >cm; csplit -s -f cs a 10 20; od -N 1600 a >od; sync -f a; sync -d b
		stat -c %n s/* >st.txt || true; ls -laR >lsr; du -a >du.txt; cp --preserve=all lsr lsr2; unlink lsr; link lsr2 lsr3
		realpath z >rp; cp -b lsr3 lsr2 2>/dev/null || true; cp --remove-destination -f a b`},
	{name: "tar-formats", needs: []string{"tar", "zstd", "setfattr", "setfacl"}, prep: `
		mkdir -p src/d; for i in {1..40}; do head -c $((i*77)) /dev/urandom >src/d/f$i; done
		truncate -s 1M src/sparse; echo x >>src/sparse; ln src/d/f1 src/hard; ln -s d/f2 src/soft; mkfifo src/fifo
		setfattr -n user.a -v b src/d/f3; setfacl -m u:5:r src/d/f4`, run: `
		tar cf a.tar -C src .; mkdir x y z; tar xf a.tar -C x; tar czf b.tgz -C x .; tar xzf b.tgz -C y; tar --zstd -cf c.tzst x
		tar --sparse --xattrs --acls -cf s.tar src; tar xf s.tar --xattrs --acls -C z; tar xf s.tar -C z --overwrite
		tar --append -f a.tar b.tgz; tar --delete -f a.tar b.tgz; tar df a.tar -C x | head -5; rm -rf y/d
		tar xf b.tgz -C y --keep-newer-files ./d; tar cf h.tar --hard-dereference x; tar -c --listed-incremental=snap -f inc.tar x`},
	{name: "rsync-delta", needs: []string{"rsync", "setfacl"}, prep: `
		mkdir -p src/a src/b; for i in {1..30}; do head -c $((i*333)) /dev/urandom >src/a/f$i; cp src/a/f$i src/b/g$i; done
		ln src/a/f1 src/a/hard; ln -s a/f1 src/soft; head -c 2000000 /dev/urandom >src/big; truncate -s 2M src/sparse; setfacl -m u:1:r src/big`, run: `
		rsync -aHAXS src/ d1/; for f in src/a/f1?; do echo more >>$f; done; rm -rf src/b
		dd if=/dev/zero of=src/big bs=4k seek=10 count=3 conv=notrunc status=none; mkfifo src/ff
		rsync -aHAXS --delete --inplace --no-whole-file src/ d1/; rsync -a --link-dest=../d1 src/ d2/
		rsync -a --delete-delay --partial --backup --backup-dir=../bk --append-verify src/ d2/
		rsync -a --remove-source-files src/a/ d3/; rsync -ac --fsync --preallocate d1/ d4/`},
	{name: "dpkg", needs: []string{"dpkg-deb", "dpkg", "ar"}, prep: `
		for p in one two; do
			mkdir -p $p/DEBIAN $p/usr/share/$p/deep; for i in {1..30}; do seq $((i*20)) >$p/usr/share/$p/deep/f$i; done
			ln -s f1 $p/usr/share/$p/deep/link; ln $p/usr/share/$p/deep/f2 $p/usr/share/$p/hard; mkdir -p $p/etc; echo conf >$p/etc/$p.conf; echo /etc/$p.conf >$p/DEBIAN/conffiles
			printf 'Package: %s\nVersion: 1\nArchitecture: all\nMaintainer: x <x@x>\nDescription: x\n' $p >$p/DEBIAN/control
			dpkg-deb -b --root-owner-group $p $p.deb >/dev/null; rm -rf $p
		done
		mkdir -p root/var/lib/dpkg/{info,updates,triggers} root/var/log; touch root/var/lib/dpkg/{status,available}`, run: `
		for p in one two; do
			dpkg-deb -x $p.deb x; dpkg-deb -R $p.deb r-$p; dpkg-deb -b --root-owner-group r-$p out-$p.deb >/dev/null; ar t $p.deb >/dev/null
			dpkg --root="$PWD/root" --force-all --no-triggers --unpack $p.deb >/dev/null 2>&1
		done
		dpkg --root="$PWD/root" --force-all --configure -a >/dev/null 2>&1 || true
		dpkg --root="$PWD/root" --force-all --purge one >/dev/null 2>&1 || true`},
	{name: "fallocate-holes", needs: []string{"fallocate", "xfs_io", "setfattr", "setfacl", "chattr", "flock"}, run: `
		fallocate -l 4M a; for how in '-p -o 1M -l 64K' '-n -o 4M -l 1M' '-z -o 0 -l 64K' '-c -o 1M -l 1M' '-i -o 1M -l 1M'; do fallocate $how a 2>/dev/null || true; done
		printf hello | dd of=a bs=1 seek=3000000 conv=notrunc status=none; fallocate -d a 2>/dev/null || true
		xfs_io -f -c 'pwrite -S 0x55 0 1m' -c 'pwrite -b 4k -V 4 2m 1m' -c 'fpunch 4k 8k' -c 'fzero 64k 64k' -c 'falloc 4m 1m' -c 'truncate 3m' \
			-c 'mmap -rw 0 1m' -c 'mwrite -S 0x66 8k 4k' -c 'msync -s 0 1m' -c 'mremap 512k' -c 'munmap' -c 'copy_range -s 0 -d 9m -l 512k b' \
			-c 'sync_range 0 1m' -c fdatasync -c fsync -c 'fadvise -d 0 1m' -c 'readahead 0 1m' b >/dev/null 2>&1 || true
		cat b >c; setfattr -n user.a -v 1 c; setfattr -n user.b -v $(printf 'x%.0s' {1..200}) c; setfattr -x user.a c
		setfattr -n trusted.t -v 1 c || true; setfacl -m u:5:rw,g:6:r c; mkdir d; setfacl -d -m u:5:rwx d; touch d/inh
		ln -s c sl; setfattr -h -n trusted.s -v 1 sl || true; cp -a --preserve=xattr c e; flock e -c 'echo locked >>e'
		xfs_io -c 'reflink c' f 2>/dev/null || true; dd if=/dev/urandom of=od bs=4k count=16 oflag=direct,dsync status=none || true
		xfs_io -f -T -c 'pwrite 0 4k' -c 'flink g' . >/dev/null 2>&1 || true`},
	{name: "clones", needs: []string{"xfs_io"}, prep: `head -c 200000 /dev/urandom >src`, run: `
		cp --reflink=auto src whole; seq 30000 >into; truncate -s 131072 into; cp into same
		xfs_io -c 'reflink src 4096 8192 16384' -c 'dedupe same 0 0 65536' into >/dev/null 2>&1 || true
		xfs_io -f -c 'reflink src 0 0 65536' part >/dev/null 2>&1 || true; cat whole into same part >all`},
	{name: "shared-descriptors", needs: []string{"/usr/bin/python3"}, run: sharedDescriptors},
	{name: "python-mmap", needs: []string{"/usr/bin/python3"}, run: pythonMmap},
	{name: "lmdb", needs: []string{"mdb_dump", "/usr/bin/python3"}, run: `
		mkdir l w; /usr/bin/python3 - <<'E'
import lmdb,os,random
r=random.Random(1)
for p,kw in (('l',{}),('w',dict(writemap=True,map_async=True))):
    e=lmdb.open(p,map_size=1<<23,max_dbs=2,**kw)
    for k in range(5):
        with e.begin(write=True) as t:
            for i in range(200): t.put(b'%08d'%r.randrange(10**7),b'v'*r.randrange(10,200))
    e.sync(True); os.mkdir(p+'c'); e.copy(p+'c',compact=True); e.close()
E
		mdb_dump l >d.txt; mkdir l2 l3; mdb_load -f d.txt l2; mdb_copy -c l2 l3; mdb_stat -e l3 >/dev/null`},
	{name: "postmark", needs: []string{"postmark"}, run: `
		printf 'set location %s\nset number 300\nset transactions 800\nset subdirectories 10\nset size 500 20000\nset seed 42\nrun\nquit\n' "$PWD" | postmark >/dev/null
		mkdir ub; printf 'set location %s/ub\nset buffering false\nset number 50\nset transactions 100\nrun\nquit\n' "$PWD" | postmark >/dev/null`},
	{name: "dbench", needs: []string{"dbench"}, run: `
		awk 'BEGIN { print "Mkdir \"\\clients\" NT_STATUS_OK"; print "Mkdir \"\\clients\\client1\" NT_STATUS_OK"
			for (i = 0; i < 40; i++) { f = "\\clients\\client1\\f" i % 7; g = f "x"; ok = " NT_STATUS_OK"
			print "NTCreateX \"" f "\" 0x44 0x5 " i + 100 ok; for (k = 0; k < 5; k++) print "WriteX " i + 100 " " k * 4096 " 4096 4096" ok
			print "ReadX " i + 100 " 0 8192 8192" ok; print "Flush " i + 100 ok; print "Close " i + 100 ok
			print "Rename \"" f "\" \"" g "\"" ok; print "Unlink \"" g "\" 0x6" ok } }' >load
		dbench -c load -t 1 -R 1 -D . 2 >out`},
	{name: "sysbench-fileio", needs: []string{"sysbench"}, prep: `
		sysbench fileio --file-total-size=8M --file-num=8 prepare >/dev/null`, run: `
		for m in sync async mmap; do
			sysbench fileio --file-total-size=8M --file-num=8 --file-test-mode=rndrw --file-io-mode=$m --events=300 --threads=2 --time=0 --rand-seed=5 --file-fsync-freq=100 run >/dev/null
		done`},
	{name: "npm-ci", needs: []string{"npm", "node"}, prep: `
		for p in one two three; do
			mkdir $p; for i in {1..20}; do echo "module.exports = $i" >$p/m$i.js; done
			echo "{\"name\": \"$p\", \"version\": \"1.0.0\", \"main\": \"m1.js\", \"bin\": {\"$p\": \"m2.js\"}}" >$p/package.json; npm pack --silent ./$p >/dev/null
		done
		echo '{"name": "app", "version": "1.0.0", "dependencies": {"one": "file:one-1.0.0.tgz", "two": "file:two-1.0.0.tgz", "three": "file:three-1.0.0.tgz"}}' >package.json
		npm install --silent --offline --no-audit --no-fund --cache ./cache; rm -rf node_modules one two three`, run: `
		npm ci --silent --offline --no-audit --no-fund --cache ./cache; node -e 'require("one"); require("two")'`},
	{name: "go-build", needs: []string{"go"}, prep: `
		mkdir -p .config/go/telemetry; echo off >.config/go/telemetry/mode # counters that processes store to through memory
		mkdir -p m/a m/b; cd m; echo 'module m' >go.mod; echo 'package a; func A() string { return "a" }' >a/a.go
		echo 'package b; import "m/a"; func B() string { return a.A() + "b" }' >b/b.go
		echo 'package main; import "m/b"; func main() { println(b.B()) }' >main.go
		GOFLAGS= GOTOOLCHAIN=local GOCACHE=$PWD/cache go build -o warm .; echo 'func C() {}' >>a/a.go`, run: `
		cd m; GOFLAGS= GOTOOLCHAIN=local GOCACHE=$PWD/cache go build -o out .; ./out 2>said; GOFLAGS= GOTOOLCHAIN=local GOCACHE=$PWD/cache go vet ./...`},
	{name: "git-merge", needs: []string{"git"}, run: `
		export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_NOSYSTEM=1
		mkdir up; cd up; git init -q -b main; mkdir d e; for i in {1..20}; do seq $((i*9)) >d/f$i; seq $i >e/g$i; done; git add -A; git commit -qm one
		for i in 1 2; do for f in d/*; do echo "# $i" >>$f; done; git commit -qam "c$i"; done
		git checkout -q -b br HEAD~1; git mv d d2; git rm -q -r e; git commit -qm mv; git checkout -q main; git merge -q -m mg -X ours br || true
		cd ..; git clone -q --no-hardlinks up cl; git clone -q --local up cl2; cd cl; git gc -q --aggressive --prune=now; git fsck --no-progress
		git worktree add -q ../wt HEAD~1; git archive -o ../a.tar HEAD; git repack -q -a -d -f; git reflog expire --all --expire=now; git prune`},
}

// fioRows are the engines of fio: every way to read and write that Linux has.
func fioRows() []row {
	var rows []row
	for _, e := range []struct{ engine, more string }{
		{"sync", ""}, {"psync", "--verify=crc32c --verify_fatal=1"}, {"vsync", ""}, {"pvsync", ""}, {"pvsync2", "--hipri=0 --nowait=0"},
		{"mmap", ""}, {"libaio", "--iodepth=8 --direct=1"}, {"posixaio", "--iodepth=4"}, {"io_uring", "--iodepth=16"}, {"splice", ""},
	} {
		rows = append(rows, row{name: "fio-" + e.engine, needs: []string{"fio"}, run: fmt.Sprintf(
			`fio --name=j --directory=. --ioengine=%s --size=1m --bs=4k --rw=randrw --randseed=7 `+
				`--allrandrepeat=1 --nrfiles=2 --numjobs=2 --fsync=64 --end_fsync=1 --output=/dev/null %s`,
			e.engine, e.more)})
	}
	return rows
}

// stressRows are groups of stress-ng's stressors: each of them does what nobody else
// would to one kind of thing.
func stressRows() []row {
	var rows []row
	for _, g := range []struct {
		name, stressors string
	}{
		{"file", "hdd:200 fallocate:20 seek:200 sync-file:5 copy-file:2 readahead:100 sendfile:100 revio:100"},
		{"dir", "dir:100 dirdeep:1 dirmany:100 dentry:300 getdent:100 handle:50 mknod:50"},
		{"link", "link:1 symlink:1 rename:300 touch:200"},
		{"meta", "access:50 chmod:100 chown:100 utime:300 fstat:50 file-ioctl:50 dup:50 open:200"},
		{"xattr", "xattr:10"},
		{"lock", "flock:300 lockf:300 lockofd:300 locka:300 lease:50"},
		{"io", "aio:50 aiol:20 io-uring:50 io:20 mmap:5 msync:50 splice:50 tee:50 vm-splice:50 sockfd:20"},
	} {
		rows = append(rows, row{name: "stress-ng-" + g.name, needs: []string{"stress-ng"}, run: fmt.Sprintf(`
			for s in %s; do
				stress-ng -q --temp-path . --seed 42 --keep-files --timeout 1s --${s%%%%:*} 1 --${s%%%%:*}-ops ${s#*:} --hdd-bytes 1m --fallocate-bytes 1m --sync-file-bytes 1m \
					--readahead-bytes 1m --iomix-bytes 2m --revio-bytes 1m --seek-size 1m --dirdeep-dirs 2 --dirdeep-inodes 200 --mmap-bytes 1m --msync-bytes 1m
			done`, g.stressors)})
	}
	return rows
}

// sharedDescriptors is a family of processes that use one another's open files: over
// fork, dup, exec and in messages.
const sharedDescriptors = `/usr/bin/python3 - <<'E'
import os,socket,array,subprocess,fcntl
fd=os.open('shared',os.O_RDWR|os.O_CREAT,0o644)
for i in range(10):                      # one position in parent and child
    p=os.fork()
    if p==0: os.write(fd,b'child %02d\n'%i); os._exit(0)
    os.waitpid(p,0); os.write(fd,b'parent %02d\n'%i)
d=os.dup(fd); os.lseek(d,0,0); os.write(fd,b'DUP'); d2=os.dup2(fd,50); os.write(50,b'DUP2'); fcntl.fcntl(fd,fcntl.F_DUPFD_CLOEXEC,60); os.close(fd); os.write(60,b'FDUP')
a,b=socket.socketpair(socket.AF_UNIX,socket.SOCK_STREAM)
p=os.fork()
if p==0:
    msg,anc,fl,ad=b.recvmsg(16,socket.CMSG_LEN(8)); f=array.array('i'); f.frombytes(anc[0][2][:8]); os.write(f[0],b'from-recv'); os.pwrite(f[1],b'second',3); os._exit(0)
g=os.open('passed',os.O_RDWR|os.O_CREAT); h=os.open('passed2',os.O_RDWR|os.O_CREAT); os.unlink('passed2')
a.sendmsg([b'x'],[(socket.SOL_SOCKET,socket.SCM_RIGHTS,array.array('i',[g,h]))]); os.waitpid(p,0); os.write(g,b'|sender'); os.pread(h,20,0)
ap=[subprocess.Popen(['sh','-c','for i in 1 2 3 4 5 6 7 8 9; do echo "w%d $i"; done >>app.log'%k]) for k in range(4)]
for x in ap: x.wait()
with open('inh','w') as f: subprocess.check_call(['sh','-c','echo a; echo b >&2; exec 9>&1; echo c >&9'],stdout=f,stderr=f)
try:
    t=os.open('.',os.O_TMPFILE|os.O_RDWR,0o600); os.write(t,b'tmpfile'); os.link('/proc/self/fd/%d'%t,'linked_tmp',src_dir_fd=os.open('/',os.O_RDONLY),follow_symlinks=True)
except OSError: pass
m=os.memfd_create('m'); os.write(m,b'memfd'); os.sendfile(60,m,0,5); dfd=os.open('.',os.O_RDONLY|os.O_DIRECTORY); os.mkdir('sub',dir_fd=dfd)
os.rename('app.log','sub/app.log',src_dir_fd=dfd,dst_dir_fd=dfd); os.symlink('shared','sl',dir_fd=dfd); os.chdir('sub'); os.rename('../inh','inh2'); os.fchdir(dfd)
os.copy_file_range(os.open('shared',os.O_RDONLY),os.open('cfr',os.O_RDWR|os.O_CREAT),50); os.posix_fallocate(g,0,8192)
E`

// pythonMmap stores through shared and private mappings, while the file is written, grown
// and closed.
const pythonMmap = `/usr/bin/python3 - <<'E'
import mmap,os,random
r=random.Random(3); n=1<<20
for name,flags in (('shared',mmap.MAP_SHARED),('private',mmap.MAP_PRIVATE)):
    fd=os.open(name,os.O_RDWR|os.O_CREAT,0o640); os.ftruncate(fd,n); m=mmap.mmap(fd,n,flags,mmap.PROT_READ|mmap.PROT_WRITE)
    for i in range(500): o=r.randrange(n-64); m[o:o+32]=bytes([i&255])*32
    m.flush(); m.flush(4096,8192); os.pwrite(fd,b'PW'*100,100000)
    pid=os.fork()
    if pid==0: m[0:4]=b'kid!'; os._exit(0)
    os.waitpid(pid,0); m.resize(n*2) if flags==mmap.MAP_SHARED else None; m.madvise(mmap.MADV_WILLNEED); os.close(fd); m[4:8]=b'late'; m.close()
E`

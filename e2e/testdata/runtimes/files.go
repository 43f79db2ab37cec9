// SPDX-License-Identifier: Apache-2.0

// Command files uses the file API of Go's run-time in the working directory.
package main

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"compress/gzip"
	"encoding/gob"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func get[T any](v T, err error) T { must(err); return v }

func main() {
	must(os.MkdirAll("go/deep/er", 0o750))
	dir := get(os.MkdirTemp("go", "tmp"))
	must(os.WriteFile("go/deep/one", make([]byte, 100000), 0o600))
	f := get(os.OpenFile("go/deep/one", os.O_APPEND|os.O_WRONLY, 0))
	for i := range 100 {
		fmt.Fprintf(f, "line %d\n", i)
	}
	must(f.Sync())
	must(f.Close())
	// Copies by the kernel.
	in, out := get(os.Open("go/deep/one")), get(os.Create(filepath.Join(dir, "copy")))
	get(io.Copy(out, in))
	get(in.Seek(100, io.SeekStart))
	get(io.CopyN(out, in, 5000))
	get(out.WriteAt([]byte("here"), 12345))
	get(out.ReadFrom(io.NewSectionReader(in, 10, 200)))
	must(out.Truncate(90000))
	must(out.Chmod(0o640))
	must(in.Close())
	must(out.Close())
	must(os.CopyFS(filepath.Join(dir, "tree"), os.DirFS("go/deep")))
	must(os.Link("go/deep/one", filepath.Join(dir, "hard")))
	must(os.Symlink("../deep/one", filepath.Join(dir, "soft")))
	get(os.Readlink(filepath.Join(dir, "soft")))
	get(filepath.EvalSymlinks(filepath.Join(dir, "soft")))
	must(os.Rename(filepath.Join(dir, "hard"), filepath.Join(dir, "hard2")))
	must(os.Chtimes(filepath.Join(dir, "hard2"), time.Unix(1600000000, 123456789), time.Unix(1500000000, 5)))
	must(os.Truncate(filepath.Join(dir, "hard2"), 50))

	root := get(os.OpenRoot(dir))
	must(root.Mkdir("inside", 0o700))
	must(root.WriteFile("inside/f", []byte("root"), 0o644))
	must(root.Rename("inside/f", "inside/g"))
	must(root.Symlink("g", "inside/l"))
	get(root.ReadFile("inside/l"))
	must(root.Link("inside/g", "inside/h"))
	must(root.Chmod("inside/g", 0o600))
	must(root.Chtimes("inside/g", time.Unix(1, 2), time.Unix(3, 4)))
	must(root.MkdirAll("inside/a/b/c", 0o755))
	if _, err := root.Open("../../go.mod"); err == nil {
		log.Fatal("left the root")
	}
	sub := get(root.OpenRoot("inside"))
	must(os.Rename(filepath.Join(dir, "inside"), filepath.Join(dir, "renamed")))
	must(sub.WriteFile("after", []byte("after the rename"), 0o644))
	must(sub.RemoveAll("a"))
	must(sub.Close())
	must(root.Close())

	tmp := get(os.CreateTemp(dir, "x*.tmp"))
	must(gob.NewEncoder(tmp).Encode(map[string]int{"a": 1}))
	must(tmp.Close())
	must(os.Remove(tmp.Name()))

	// A mapping.
	m := get(os.Create(filepath.Join(dir, "mapped")))
	must(m.Truncate(1 << 16))
	mem := get(syscall.Mmap(int(m.Fd()), 0, 1<<16, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED))
	copy(mem[5000:], "through memory")
	mem[60000] = 7
	must(syscall.Munmap(mem))
	must(m.Close())

	// Archives.
	z := get(os.Create(filepath.Join(dir, "a.zip")))
	zw := zip.NewWriter(z)
	must(zw.AddFS(os.DirFS("go/deep")))
	must(zw.Close())
	must(z.Close())
	t := get(os.Create(filepath.Join(dir, "a.tar.gz")))
	g := gzip.NewWriter(t)
	tw := tar.NewWriter(g)
	must(tw.AddFS(os.DirFS("go/deep")))
	must(tw.Close())
	must(g.Close())
	must(t.Close())
	must(filepath.WalkDir("go", func(p string, d fs.DirEntry, err error) error {
		if err == nil {
			_, err = d.Info()
		}
		return err
	}))

	// From a connection to a file and back, by splice and sendfile.
	l := get(net.Listen("tcp", "127.0.0.1:0"))
	var wait sync.WaitGroup
	wait.Go(func() {
		c := get(l.Accept())
		to := get(os.Create(filepath.Join(dir, "received")))
		get(io.Copy(to, c))
		must(to.Close())
		must(c.Close())
	})
	c := get(net.Dial("tcp", l.Addr().String()))
	from := get(os.Open("go/deep/one"))
	get(io.Copy(c, from))
	must(from.Close())
	must(c.Close())
	wait.Wait()

	// Pipes between commands.
	cmd := exec.Command("sh", "-c", "cat >&1; echo err >&2")
	cmd.Stdin = get(os.Open("go/deep/one"))
	cmd.Stdout = get(os.Create(filepath.Join(dir, "stdout")))
	cmd.Stderr = cmd.Stdout
	must(cmd.Run())
	r, w := get2(os.Pipe())
	wait.Go(func() { fmt.Fprintln(w, "through a pipe"); w.Close() })
	p := get(os.Create(filepath.Join(dir, "piped")))
	get(io.Copy(p, r))
	must(p.Close())
	wait.Wait()

	var group sync.WaitGroup
	shared := get(os.OpenFile(filepath.Join(dir, "shared"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o666))
	for i := range 8 {
		group.Go(func() {
			name := filepath.Join(dir, fmt.Sprint("w", i))
			f := get(os.Create(name))
			b := bufio.NewWriter(f)
			for j := range 2000 {
				fmt.Fprintln(b, i, j)
			}
			must(b.Flush())
			must(f.Close())
			get(shared.WriteString("8 bytes\n"))
			must(os.Rename(name, name+".done"))
		})
	}
	group.Wait()
	get(shared.ReadAt(make([]byte, 30), 0))
	must(shared.Close())
	get(os.ReadDir(dir))
	for i := range 3 {
		must(os.Remove(filepath.Join(dir, fmt.Sprintf("w%d.done", i))))
	}
	must(os.RemoveAll(filepath.Join(dir, "tree")))
	must(os.Chdir(dir))
	must(os.WriteFile("relative", []byte("x"), 0o444))
	must(os.Chmod("relative", 0o200))
	_ = os.Lchown("soft", os.Getuid(), os.Getgid())
}

func get2[T, U any](a T, b U, err error) (T, U) { must(err); return a, b }

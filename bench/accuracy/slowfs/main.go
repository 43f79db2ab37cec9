// Slowfs is a file system of a speed that is chosen: it passes everything on to a
// directory, best one in memory, and holds each read, write and flush for as long as a
// modelled device would take.
//
//	slowfs [-arms N] [-seek D] [-transfer D] BACKING MOUNTPOINT
//
// A device has N arms, of which each does one request at a time, first come first served:
// a disk has one, a flash drive many. A request that does not follow the one before on
// its arm takes the seek time; each 64 KiB take the transfer time. There is no cache:
// writes are done when they return. A flush of a file that was written since its last one
// takes a seek, and so does each write through a descriptor with O_SYNC or O_DSYNC;
// others take nothing. Names, sizes and attributes take no time.
//
// What a request costs this program is done within the modelled time, not after it.
//
// It writes a line when it is mounted, and ends with SIGTERM. All users see the mount.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

func main() {
	var d device
	arms := flag.Int("arms", 1, "requests that are done at the same `time`")
	flag.DurationVar(&d.seek, "seek", 3*time.Millisecond, "`time` of a request that does not follow the one before on its arm")
	flag.DurationVar(&d.transfer, "transfer", 300*time.Microsecond, "`time` for each 64 KiB")
	input := flag.Bool("input", false, "also end when the standard input does")
	flag.Parse()
	if flag.NArg() != 2 || *arms < 1 || *arms > 1024 || d.seek < 0 || d.transfer < 0 {
		fmt.Fprintln(os.Stderr, "usage: slowfs [-arms N] [-seek D] [-transfer D] BACKING MOUNTPOINT")
		os.Exit(2)
	}
	d.arms = make([]arm, *arms)
	if err := serve(&d, flag.Arg(0), flag.Arg(1), *input); err != nil {
		fmt.Fprintf(os.Stderr, "slowfs: %v\n", err)
		os.Exit(1)
	}
}

// tune keeps the runtime out of the way: requests wait in system calls, and a thread that
// comes back from one must find a place to go on at once.
func tune() {
	runtime.GOMAXPROCS(32)
	debug.SetGCPercent(1000)
	syscall.Umask(0) // the caller's was applied
}

func serve(d *device, backing, mountpoint string, input bool) error {
	tune()
	server, err := mount(d, backing, mountpoint)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for range stop {
			_ = server.Unmount() // EBUSY: the next signal tries again
		}
	}()
	if input {
		go func() { // who has started this is gone
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop <- syscall.SIGTERM
		}()
	}
	fmt.Println("mounted")
	server.Wait()
	return nil
}

// mount makes a directory show what is in another one, as slowly as a device is.
func mount(d *device, backing, mountpoint string) (*fuse.Server, error) {
	if d.clock == nil {
		k, err := newKernelClock()
		if err != nil {
			return nil, err
		}
		d.clock = k
	}
	root, err := fs.NewLoopbackRoot(backing)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", backing, err)
	}
	loop, ok := root.(*fs.LoopbackNode)
	if !ok {
		return nil, fmt.Errorf("%s: a loopback of type %T", backing, root)
	}
	top := &node{LoopbackNode: loop, device: d}
	loop.RootData.RootNode = top
	long := time.Hour // nothing changes what is behind but this
	server, err := fs.Mount(mountpoint, top, &fs.Options{EntryTimeout: &long, AttrTimeout: &long, MountOptions: fuse.MountOptions{
		FsName: "slowfs", Name: "slowfs", DirectMount: true,
		AllowOther: true, Options: []string{"default_permissions"}, // a database's server has another user
	}})
	if err != nil {
		return nil, fmt.Errorf("mount %s: %w", mountpoint, err)
	}
	return server, nil
}

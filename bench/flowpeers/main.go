// SPDX-License-Identifier: Apache-2.0

// Flowpeers sets what iotape flow finds, and how long it takes, beside those who did it
// before: CAT's index of similar content, and Falcon's solver for the order of events.
//
//	flowpeers LOG
//
// LOG is Falcon's log of ZooKeeper. The solver is z3 in the PATH; without it, only
// ours is measured. Nothing of CAT, Falcon or datasketch is in here: their parameters are.
package main

import (
	"fmt"
	"log"
	"os"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("flowpeers: ")
	if len(os.Args) != 2 {
		log.Fatal("usage: flowpeers LOG")
	}
	for _, size := range []int{600, 1024, 4096} {
		if err := pairs(size); err != nil {
			log.Fatal(err)
		}
	}
	if err := order(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// cpu is the processor time that this process has used, or its children that ended.
func cpu(who int) time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(who, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// took is the processor time of f.
func took(f func()) time.Duration {
	before := cpu(syscall.RUSAGE_SELF)
	f()
	return cpu(syscall.RUSAGE_SELF) - before
}

func row(cells ...any) {
	fmt.Print("|")
	for _, c := range cells {
		fmt.Printf(" %v |", c)
	}
	fmt.Println()
}

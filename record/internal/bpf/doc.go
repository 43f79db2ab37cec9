// SPDX-License-Identifier: Apache-2.0

// Package bpf has what the eBPF programs of recording (record/capture/ebpf) and of counting
// (record/count) have in common, on both sides of the kernel's border.
//
//	include/*.h    what threads are followed, what a call is, which calls a filter refuses
//	table.go       the table that tells the programs of each call, from package event
//	requests.go    the same of requests to io_uring and of Linux AIO
//	prefilter.go      a filter as the programs walk it
//	features.go    whether this kernel can do all that; attaching
//	threads.go     threads that are followed from user space
//	shared.go      the memory and the types that both sides share
//
// The package loads no program: record/capture/ebpf and record/count have their own objects.
package bpf

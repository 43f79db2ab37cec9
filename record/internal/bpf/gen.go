// SPDX-License-Identifier: Apache-2.0

package bpf

//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64,arm64 -no-global-types -type common -type task -type spec -type cap -type request_row -type prefilter_step -type suffix shared include/shared.c -- -O2 -g -Wall -Werror -mcpu=v3

// SPDX-License-Identifier: Apache-2.0

package count

//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64,arm64 -no-global-types -type count_key -type counts count bpf/count.c -- -O2 -g -Wall -Werror -mcpu=v3 -Ibpf -I../internal/bpf/include

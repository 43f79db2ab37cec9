// SPDX-License-Identifier: Apache-2.0

package ebpf

//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64,arm64 -no-global-types -type held -type pending -type part -type touch -type block_io -type fault -type stored -type file_key -type mapping_count iotape bpf/iotape.c -- -O2 -g -Wall -Werror -mcpu=v3 -Ibpf -I../../internal/bpf/include
//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64,arm64 -no-global-types -type stack_counts stack bpf/stack.c -- -O2 -g -Wall -Werror -Wno-unused-function -mcpu=v3 -Ibpf -I../../internal/bpf/include

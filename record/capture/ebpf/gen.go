package ebpf

//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64,arm64 -type task -type held -type spec -type cap -type request_row -type pending -type part -type touch -type fault -type stored -type file_key -type mapping_count -type screen_step iotape bpf/iotape.c -- -O2 -g -Wall -Werror -mcpu=v3
// count.c uses a part of the headers only.
//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64,arm64 -type count_key count bpf/count.c -- -O2 -g -Wall -Werror -Wno-unused-function -mcpu=v3

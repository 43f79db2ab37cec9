package count

// count.c uses a part of the headers only.
//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target amd64,arm64 -no-global-types -type count_key -type counts count bpf/count.c -- -O2 -g -Wall -Werror -Wno-unused-function -mcpu=v3 -I../internal/bpf/include

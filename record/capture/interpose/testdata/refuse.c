// SPDX-License-Identifier: Apache-2.0
// Runs argv[2], with its arguments, such that prctl(PR_SET_SYSCALL_USER_DISPATCH) is refused as argv[1] says: probe
// (always), programs (with a selector that a program can have, or none), births (with one that is not at the beginning of
// 256 bytes).
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(off) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, off)
#define ARG(n) (offsetof(struct seccomp_data, args) + 8 * (n))
#define ALLOW_UNLESS(x) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, x, 1, 0), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int main(int argc, char **argv)
{
	struct sock_filter f[] = {
		LOAD(offsetof(struct seccomp_data, nr)),
		ALLOW_UNLESS(SYS_prctl),
		LOAD(ARG(0)),
		ALLOW_UNLESS(59 /* PR_SET_SYSCALL_USER_DISPATCH */),
		LOAD(ARG(1)),
		ALLOW_UNLESS(1 /* PR_SYS_DISPATCH_ON */),
		LOAD(ARG(4) + 4),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, strcmp(argv[1], "probe") ? 0x80000000 : 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		LOAD(ARG(4)),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, strcmp(argv[1], "births") ? 0 : 255),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, strcmp(argv[1], "births") ? 1 : 0, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog p = {sizeof f / sizeof *f, f};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		return 124;
	execv(argv[2], argv + 2);
	return 127;
}

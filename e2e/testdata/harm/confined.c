// confined strict | kill | errno: lets the kernel kill it at any call but read, write,
// exit and sigreturn, by seccomp's strict mode or by a filter that also makes getppid
// fail with EDOM; writes, and exits with 0.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int main(int argc, char **argv)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_read), ALLOW(SYS_write), ALLOW(SYS_exit), ALLOW(SYS_exit_group), ALLOW(SYS_rt_sigreturn),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EDOM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog prog = { sizeof f / sizeof *f, f };
	if (argc != 2)
		return 2;
	if (!strcmp(argv[1], "strict")) {
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) {
			perror("strict mode");
			return 3;
		}
	} else if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return 3;
	if (write(1, "confined\n", 9) != 9)
		return 4;
	if (!strcmp(argv[1], "errno") && (syscall(SYS_getppid) != -1 || errno != EDOM))
		return 5;
	if (!strcmp(argv[1], "kill"))
		syscall(SYS_getpid);
	syscall(SYS_exit, 0);
	return 6;
}

// SPDX-License-Identifier: Apache-2.0
// Uses what the recorder uses, as argv[1] says: gs, dispatch, int80, probe, filter, or nothing. Before and after, it
// writes to descriptor 1.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static char selector; // SYSCALL_DISPATCH_FILTER_ALLOW
static volatile int caught;

static void on_sigsys(int sig)
{
	selector = 0;
	caught++;
}

int main(int argc, char **argv)
{
	static unsigned long word = 0x1122334455667788, got;
	for (int i = 0; i < 100; i++)
		write(1, "a", 1);
	if (!strcmp(argv[1], "gs")) {
		syscall(SYS_arch_prctl, 0x1001 /* ARCH_SET_GS */, &word);
		for (int i = 0; i < 100; i++) {
			write(1, "b", 1);
			__asm__ volatile("mov %%gs:0, %0" : "=r"(got));
			if (got != word)
				return 2;
		}
	}
	if (!strcmp(argv[1], "dispatch")) {
		signal(SIGSYS, on_sigsys);
		if (prctl(PR_SET_SYSCALL_USER_DISPATCH, PR_SYS_DISPATCH_ON, 0, 0, &selector))
			return 3;
		for (int i = 0; i < 100; i++)
			write(1, "b", 1);
		selector = 1; // SYSCALL_DISPATCH_FILTER_BLOCK
		getppid();
		selector = 0;
		if (caught != 1)
			return 4;
	}
	if (!strcmp(argv[1], "probe") || !strcmp(argv[1], "filter")) { // as Chromium does
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0) == 0 || errno != EFAULT)
			return 6;
		if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 0) == 0 || errno != EFAULT)
			return 7;
		struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
		struct sock_fprog filter = {1, &allow};
		if (argv[1][0] == 'f' &&
		    (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)))
			return 8;
		struct sigaction set = {.sa_handler = on_sigsys}, was;
		if (sigaction(SIGSYS, &set, &was) || was.sa_handler != SIG_DFL || was.sa_flags)
			return 9;
		if (sigaction(SIGSYS, 0, &was) || was.sa_handler != on_sigsys)
			return 10;
		for (int i = 0; i < 100; i++)
			write(1, "b", 1);
	}
	if (!strcmp(argv[1], "int80")) {
		char *low = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
		*low = 'b';
		for (int i = 0; i < 100; i++) {
			long ret;
			__asm__ volatile("int $0x80" : "=a"(ret) : "a"(4 /* write */), "b"(1), "c"(low), "d"(1) : "memory", "r8", "r9", "r10", "r11");
			if (ret != 1)
				return 5;
		}
	}
	for (int i = 0; i < 100; i++)
		write(1, "c", 1);
	return 0;
}

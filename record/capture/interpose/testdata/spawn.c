// SPDX-License-Identifier: Apache-2.0
// Makes argv[1] short processes, in turn by vfork, posix_spawn, clone3 with a stack of its own, and
// fork; each writes a byte to descriptor 10, those of posix_spawn by being executed anew.
#define _GNU_SOURCE
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char stack[65536] __attribute__((aligned(16)));

static int child(void *arg)
{
	write(10, "c", 1);
	_exit(0);
}

int main(int argc, char **argv)
{
	long n = atol(argv[1]);
	if (n == 0) { // executed by posix_spawn
		write(10, "s", 1);
		return 0;
	}
	int pipefd[2], status;
	pipe(pipefd);
	dup2(pipefd[1], 10);
	for (long i = 0; i < n; i++) {
		pid_t pid;
		switch (i % 4) {
		case 0:
			pid = vfork();
			if (pid == 0) {
				write(10, "v", 1);
				_exit(0);
			}
			break;
		case 1: {
			char *args[] = {argv[0], "0", 0};
			if (posix_spawn(&pid, argv[0], 0, 0, args, environ))
				return 2;
			break;
		}
		case 2:
			// glibc's clone is the system call clone with a stack
			pid = clone(child, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, 0);
			break;
		default: {
			struct clone_args c = {.exit_signal = SIGCHLD};
			pid = syscall(SYS_clone3, &c, sizeof c);
			if (pid == 0) {
				write(10, "f", 1);
				_exit(0);
			}
		}
		}
		char b;
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status || read(pipefd[0], &b, 1) != 1 || b != "vscf"[i % 4])
			return 3;
	}
	printf("made %ld\n", n);
	return 0;
}

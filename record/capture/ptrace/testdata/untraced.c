// SPDX-License-Identifier: Apache-2.0
// Makes a child with CLONE_UNTRACED, by clone, or by clone3 if there is an argument. The child writes to descriptor 1.
#define _GNU_SOURCE
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int child(void *arg)
{
	return write(1, "child", 5) == 5 ? 7 : 1;
}

int main(int argc, char **argv)
{
	struct clone_args args = {.flags = CLONE_UNTRACED, .exit_signal = SIGCHLD};
	int pid, status;
	if (argc == 1)
		pid = clone(child, (char *)malloc(65536) + 65536, CLONE_UNTRACED | SIGCHLD, 0);
	else if (!(pid = syscall(SYS_clone3, &args, sizeof args)))
		_exit(child(0));
	if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != 7)
		return 2;
	return args.flags == CLONE_UNTRACED ? 0 : 3;
}

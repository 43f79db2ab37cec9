// Many short-lived processes by posix_spawn, vfork and fork, some killed at once;
// and a first thread that ends before the others.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void *last(void *arg)
{
	usleep(50000);
	write(1, "last\n", 5);
	exit(6);
}

int main(void)
{
	char *argv[] = { "true", 0 };
	pid_t pid;
	for (int i = 0; i < 60; i++) {
		posix_spawnp(&pid, "true", 0, 0, argv, environ);
		waitpid(pid, 0, 0);
		if (!(pid = vfork())) {
			_exit(3);
		}
		waitpid(pid, 0, 0);
		if (!(pid = fork())) {
			setpgid(0, 0);
			_exit(4);
		}
		if (i % 2)
			kill(pid, SIGKILL);
		if (i % 3)
			waitpid(pid, 0, 0);
	}
	while (wait(0) > 0)
		;
	pthread_t t;
	pthread_create(&t, 0, last, 0);
	syscall(SYS_exit, 0);
}

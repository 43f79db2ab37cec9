// SPDX-License-Identifier: Apache-2.0

/* Threads make, write and rename files of their own until the process ends, which kills each within a call. With an
 * argument, the process is killed by a signal of its own. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static void *work(void *arg)
{
	char name[20], other[20];

	snprintf(name, sizeof(name), "f%ld", (long)arg);
	snprintf(other, sizeof(other), "r%ld", (long)arg);
	for (;;) {
		int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
		if (write(fd, name, 2) < 0 || close(fd) || rename(name, other))
			return 0;
	}
}

int main(int argc, char **argv)
{
	pthread_t t;

	(void)argv;
	for (long i = 0; i < 6; i++)
		pthread_create(&t, 0, work, (void *)i);
	usleep(50000);
	if (argc > 1)
		kill(getpid(), SIGKILL);
	_exit(0);
}

// SPDX-License-Identifier: Apache-2.0
// Makes argv[2] processes, as argv[1] says: in turn, while signals come to all of them (signals), or all at once, the
// last 20 of which make another (many); or threads (threads). They append bytes to the file argv[3], descriptor 10; so does
// the handler.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void handler(int sig)
{
	write(10, "s", 1);
}

static void *works(void *arg)
{
	for (int i = 0; i < 3; i++)
		write(10, "w", 1);
	return arg;
}

// hail signals the process group of its parent a few times for each byte that it reads.
static pid_t hail(int from)
{
	pid_t group = getpgrp(), pid = fork();
	if (pid == 0) {
		char c;
		signal(SIGUSR1, SIG_IGN);
		setpgid(0, 0);
		while (read(from, &c, 1) == 1)
			for (int i = 0; i < 4; i++)
				usleep(rand() % 400), kill(-group, SIGUSR1);
		_exit(0);
	}
	return pid;
}

static int bad;

static void ends(pid_t pid)
{
	int status;
	pid_t got;
	while ((got = waitpid(pid, &status, 0)) < 0)
		;
	if (got != pid || status != 0)
		bad++, fprintf(stderr, "process %d ended with status %#x\n", pid, status);
}

int main(int argc, char **argv)
{
	int n = atoi(argv[2]), p[2];
	dup2(open(argv[3], O_WRONLY | O_CREAT | O_APPEND, 0600), 10);
	setpgid(0, 0);
	pipe(p);
	if (!strcmp(argv[1], "signals")) {
		struct sigaction a = {.sa_handler = handler};
		sigaction(SIGUSR1, &a, 0);
		pid_t other = hail(p[0]);
		for (int i = 0; i < n; i++) {
			write(p[1], "", 1);
			pid_t pid = fork();
			if (pid == 0) {
				works(0);
				_exit(0);
			}
			ends(pid);
		}
		kill(other, SIGKILL);
		waitpid(other, 0, 0);
	} else if (!strcmp(argv[1], "threads")) {
		for (int i = 0; i < n; i++) {
			pthread_t t;
			pthread_create(&t, 0, works, 0);
			works(0);
			pthread_join(t, 0);
		}
	} else {
		pid_t *pids = calloc(n, sizeof *pids);
		for (int i = 0; i < n; i++) {
			pids[i] = fork();
			if (pids[i] == 0) {
				char c;
				close(p[1]);
				read(p[0], &c, 1); // until all are there
				works(0);
				pid_t pid = i < n - 20 ? -1 : fork();
				if (pid == 0) {
					works(0);
					_exit(0);
				}
				if (pid > 0)
					ends(pid);
				_exit(bad);
			}
		}
		close(p[1]);
		for (int i = 0; i < n; i++)
			ends(pids[i]);
	}
	printf("bad %d\n", bad);
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
// timer RESULT LOG PID COMMAND [ARG...]: runs a command and writes to RESULT how
// long it took, so that what a recorder does before and after is not counted.
//
// The command's standard output and error go to LOG. PID is the process whose CPU
// time during the command is noted as well: the recorder; 0 is the timer's parent.
// RESULT is a line of numbers:
//
//	start end      of the command, ns of CLOCK_MONOTONIC
//	user sys       CPU time of the command and what it waited for, µs
//	recorder       CPU time of PID while the command ran, in ticks of 1/tick s
//	tick           ticks in a second
//	status         of wait(2)
//
// Its own exit status is the command's.
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static long long us(struct timeval t) { return t.tv_sec * 1000000LL + t.tv_usec; }

// ticks returns the CPU time of a process, user and system, from proc(5); 0 if it
// cannot be read.
static long ticks(pid_t pid) {
	char path[64], line[1024];
	unsigned long user = 0, sys = 0;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	if (fgets(line, sizeof line, f)) {
		char *after = strrchr(line, ')'); // the name may hold anything
		if (!after || sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &sys) != 2)
			user = sys = 0;
	}
	fclose(f);
	return (long)(user + sys);
}

int main(int argc, char **argv) {
	if (argc < 5)
		errx(125, "usage: timer RESULT LOG PID COMMAND [ARG...]");
	int result = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (result < 0)
		err(125, "%s", argv[1]);
	int log = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	if (log < 0)
		err(125, "%s", argv[2]);
	pid_t recorder = atoi(argv[3]);
	if (recorder == 0)
		recorder = getppid();

	long before = ticks(recorder);
	long long start = now();
	pid_t pid = fork();
	if (pid < 0)
		err(125, "fork");
	if (pid == 0) {
		if (dup2(log, 1) < 0 || dup2(log, 2) < 0)
			_exit(125);
		execvp(argv[4], argv + 4);
		warn("%s", argv[4]);
		_exit(127);
	}
	int status;
	struct rusage use;
	if (wait4(pid, &status, 0, &use) != pid)
		err(125, "wait");
	long long end = now();
	long after = ticks(recorder);

	dprintf(result, "%lld %lld %lld %lld %ld %ld %d\n", start, end, us(use.ru_utime), us(use.ru_stime),
		after - before, sysconf(_SC_CLK_TCK), status);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

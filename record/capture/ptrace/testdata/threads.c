// Threads that write, then one that calls execve while the others wait.
// argv[1] is a directory.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char *dir;

static void *writer(void *arg)
{
	char name[4096], line[64];
	snprintf(name, sizeof name, "%s/t%ld", dir, (long)arg);
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	for (int i = 0; i < 50; i++)
		write(fd, line, snprintf(line, sizeof line, "thread %ld line %d\n", (long)arg, i));
	close(fd);
	return 0;
}

static void *execs(void *arg)
{
	usleep(20000); // the first thread waits by then
	execl("/bin/sh", "sh", "-c", "echo from the new image > \"$1\"", "sh", (char *)arg, (char *)0);
	return 0;
}

static void *waits(void *arg)
{
	char c;
	int p[2];
	pipe(p);
	read(p[0], &c, 1);
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t t[8];
	dir = argv[1];
	for (long i = 0; i < 8; i++)
		pthread_create(&t[i], 0, writer, (void *)i);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], 0);
	pthread_create(&t[0], 0, waits, 0);
	char out[4096];
	snprintf(out, sizeof out, "%s/exec", dir);
	pthread_create(&t[1], 0, execs, out);
	waits(0);
	return 1;
}

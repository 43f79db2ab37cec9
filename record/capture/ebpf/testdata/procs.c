/* Makes processes: procs N. By vfork and execve, by fork, with long arguments, with
 * strings whose pages nobody has touched, and from a thread that is not the first. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static char *env[] = {0};

static void *other(void *arg)
{
	char *argv[] = {arg, "third", 0};
	execve(arg, argv, env);
	_exit(1);
}

int main(int argc, char **argv)
{
	int n = atoi(argv[1]), status;
	if (!strcmp(argv[1], "third"))
		return 7;
	if (n == 0)
		return strlen(argv[1]) > 1000 ? 9 : 5;
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();
		if (pid == 0)
			_exit(i & 127);
		if (waitpid(pid, &status, 0) != pid || WEXITSTATUS(status) != (i & 127))
			return 1;
	}
	char *quick[] = {"/proc/self/exe", "0", 0};
	if (vfork() == 0) {
		execve("/proc/self/exe", quick, env);
		_exit(1);
	}
	wait(&status);
	if (WEXITSTATUS(status) != 5)
		return 2;

	/* 12 arguments of 100 kB */
	static char *big[20];
	big[0] = argv[0];
	for (int i = 1; i <= 12; i++) {
		big[i] = malloc(100001);
		memset(big[i], 'a' + i, 100000);
		big[i][100000] = 0;
	}
	if (fork() == 0) {
		execve("/proc/self/exe", big, env);
		_exit(1);
	}
	wait(&status);
	if (WEXITSTATUS(status) != 9)
		return 3;

	/* a path and arguments in pages that are only in a file */
	int fd = open("strings", O_RDWR | O_CREAT | O_TRUNC, 0644);
	char page[8192] = "/proc/self/exe";
	strcpy(page + 4096, "0");
	strcpy(page + 4100, "from a file");
	if (write(fd, page, sizeof(page)) != sizeof(page))
		return 4;
	char *m = mmap(0, sizeof(page), PROT_READ, MAP_PRIVATE, fd, 0);
	char *cold[] = {argv[0], m + 4096, m + 4100, 0};
	if (fork() == 0) {
		execve(m, cold, env);
		_exit(1);
	}
	wait(&status);
	if (WEXITSTATUS(status) != 5)
		return 5;

	if (fork() == 0) {
		pthread_t t;
		pthread_create(&t, 0, other, argv[0]);
		pthread_join(t, 0);
	}
	wait(&status);
	return WEXITSTATUS(status) == 7 ? 0 : 6;
}

// forker DIR SECONDS: 6 threads make processes and threads as fast as they can, by fork,
// vfork, posix_spawn (which executes this program) and pthread_create, and write what
// fills the recorder's buffers. It prints "fine" if all ended as they should.
// forker N: makes N processes by vfork, the i-th of which exits with i % 128.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { threads = 6, bytes = 65536 };
static atomic_int bad, stop;
static const char *dir;
static char why[100];
extern char **environ;

static void fail(const char *what)
{
	if (!atomic_exchange(&bad, 1))
		snprintf(why, sizeof why, "%s: %s", what, strerror(errno));
}

static void ends(const char *what, pid_t pid, int want)
{
	int status = 0;
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != want)
		fail(what);
}

static void *nothing(void *arg) { return arg; }

static void *work(void *arg)
{
	long id = (long)arg;
	char name[4096], *args[] = { "forker", "exit", 0 };
	static char block[bytes];
	pthread_t t;
	pid_t pid;
	snprintf(name, sizeof name, "%s/f%ld", dir, id);
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	for (long i = 0; !stop; i++) {
		if (pwrite(fd, block, bytes, 0) != bytes)
			fail("pwrite");
		switch ((i + id) % 4) {
		case 0:
			if (!(pid = fork()))
				_exit(pwrite(fd, "child", 5, 0) == 5 ? 3 : 1);
			ends("fork", pid, 3);
			break;
		case 1:
			if (!(pid = vfork()))
				_exit(4);
			ends("vfork", pid, 4);
			break;
		case 2:
			if (posix_spawn(&pid, "/proc/self/exe", 0, 0, args, environ))
				fail("posix_spawn");
			else
				ends("posix_spawn", pid, 5);
			break;
		case 3:
			if (pthread_create(&t, 0, nothing, 0) || pthread_join(t, 0))
				fail("pthread_create");
		}
	}
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t t[threads];
	if (argc == 2 && !strcmp(argv[1], "exit"))
		return 5;
	if (argc == 2) {
		for (long i = 0, n = atol(argv[1]); i < n; i++) {
			pid_t pid = vfork();
			if (!pid)
				_exit(i & 127);
			ends("vfork", pid, i & 127);
		}
		return bad;
	}
	dir = argv[1];
	for (long i = 0; i < threads; i++)
		pthread_create(&t[i], 0, work, (void *)i);
	struct timespec rest = { atol(argv[2]), 0 };
	nanosleep(&rest, 0);
	stop = 1;
	for (long i = 0; i < threads; i++)
		pthread_join(t[i], 0);
	if (bad)
		printf("bad %s\n", why);
	else
		printf("fine\n");
	return bad;
}

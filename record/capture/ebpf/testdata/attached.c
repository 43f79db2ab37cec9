/* A program that has things going on when a recording of it begins: four threads,
 * one of them in a read that has not returned and one that makes threads without
 * end, two children, and open files of which they share one. It goes on when the
 * file "go" is there, and ends by executing itself.
 *
 *	attached DIR
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int a, b, logfd, pipefd[2];
static volatile int interrupted;

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		_exit(3);
	}
}

static void wait_for(const char *name)
{
	while (access(name, F_OK))
		usleep(2000);
}

static void *reader(void *p)
{
	char buf[32];
	ssize_t n = read(pipefd[0], buf, sizeof(buf)); /* under way when recording begins */
	check(n == 7 && !memcmp(buf, "through", 7), "read of the pipe");
	return 0;
}

static void *nothing(void *p)
{
	close(open("/dev/null", O_RDONLY));
	return 0;
}

static void *maker(void *p)
{
	pthread_t t;
	while (access("go", F_OK)) {
		check(!pthread_create(&t, 0, nothing, 0), "thread");
		pthread_join(t, 0);
		usleep(300); /* a recorder that drops events is to lose none on a busy machine */
	}
	return 0;
}

static void *seeker(void *p)
{
	char buf[5];
	wait_for("go");
	check(read(b, buf, 5) == 5, "read b");
	return 0;
}

static void child(int i)
{
	char line[16];
	wait_for("go");
	int n = snprintf(line, sizeof(line), "child %d\n", i);
	check(write(logfd, line, n) == n, "write log");
	_exit(0);
}

int main(int argc, char **argv)
{
	pthread_t t[3];
	int i, status;

	if (argc == 3) { /* executed again: the marked descriptor is closed */
		check(write(atoi(argv[2]), "x", 1) < 0 && errno == EBADF, "closed by execve");
		check((i = open("last", O_WRONLY | O_CREAT | O_TRUNC, 0666)) >= 0, "last");
		check(write(i, "end", 3) == 3, "write last");
		return 7;
	}
	check(!chdir(argv[1]), argv[1]);
	umask(027);
	check((a = open("a", O_RDWR | O_CREAT | O_CLOEXEC, 0666)) >= 0, "a");
	check(write(a, "0123456789", 10) == 10, "write a");
	check((b = open("a", O_RDONLY)) >= 0, "b");
	check(lseek(b, 3, SEEK_SET) == 3, "seek");
	check((logfd = open("log", O_WRONLY | O_CREAT, 0666)) >= 0, "log");
	check(write(logfd, "head\n", 5) == 5, "write log");
	check(!pipe(pipefd), "pipe");
	for (i = 0; i < 2; i++)
		if (!fork())
			child(i);
	pthread_create(&t[0], 0, reader, 0);
	pthread_create(&t[1], 0, maker, 0);
	pthread_create(&t[2], 0, seeker, 0);
	usleep(20000);
	puts("ready");
	fflush(stdout);
	wait_for("go");
	check(write(a, "after", 5) == 5, "write a");
	check(write(pipefd[1], "through", 7) == 7, "write pipe");
	for (i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	while (wait(&status) > 0)
		check(status == 0, "child");
	char fd[12], *again[] = {argv[0], "again", fd, 0};
	snprintf(fd, sizeof(fd), "%d", a);
	execv("/proc/self/exe", again);
	check(0, "exec");
}

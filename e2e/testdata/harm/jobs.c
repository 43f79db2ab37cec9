// jobs FILE: stops and continues a child that writes to FILE as fast as it can, 20 times,
// as a shell does. It prints "fine" if each stop and continuation is reported, with its
// signal, and the child does nothing between them.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static off_t size(const char *name)
{
	struct stat st;
	return stat(name, &st) ? -1 : st.st_size;
}

static void rest(void)
{
	struct timespec t = { 0, 10000000 };
	nanosleep(&t, 0);
}

int main(int argc, char **argv)
{
	static char block[8192];
	int status, signals[] = { SIGSTOP, SIGTSTP, SIGTTIN };
	if (argc != 2)
		return 2;
	pid_t pid = fork();
	if (!pid) {
		int fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0644);
		for (int i = 0;; i++)
			if (write(fd, block, sizeof block) != sizeof block)
				_exit(1);
	}
	setpgid(pid, pid);
	for (int i = 0; i < 20; i++) {
		int sig = signals[i % 3];
		rest();
		kill(pid, sig);
		if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status) || WSTOPSIG(status) != sig) {
			printf("stop %d: status %x\n", i, status);
			break;
		}
		off_t before = size(argv[1]);
		rest();
		if (size(argv[1]) != before) {
			printf("stop %d: it writes\n", i);
			break;
		}
		kill(pid, SIGCONT);
		if (waitpid(pid, &status, WCONTINUED) != pid || !WIFCONTINUED(status)) {
			printf("continue %d: status %x\n", i, status);
			break;
		}
		if (i == 19)
			printf("fine\n");
	}
	kill(pid, SIGKILL);
	return waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : 1;
}

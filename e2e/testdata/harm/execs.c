// execs DIR SECONDS: executes programs one after the other, by fork and execve, and counts them in a
// file. It prints "fine" if all ended as they should.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char name[4096];
	if (argc == 2)
		return 5;
	snprintf(name, sizeof name, "%s/f0", argv[1]);
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
	for (time_t end = time(0) + atol(argv[2]); time(0) < end;) {
		int status;
		pid_t pid = fork();
		if (!pid) {
			execl("/proc/self/exe", "execs", "exit", (char *)0);
			_exit(1);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 5) {
			printf("bad status %#x\n", status);
			return 1;
		}
		if (write(fd, ".", 1) != 1)
			return 1;
	}
	if (write(fd, "end\n", 4) != 4)
		return 1;
	printf("fine\n");
	return 0;
}

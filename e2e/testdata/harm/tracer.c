// tracer: traces a child, from outside or, with any argument, by its own wish, and lets
// it go on. It prints "fine" if that works, or why not.
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int status, p[2];
	char c;
	(void)argv;
	if (pipe(p))
		return 2;
	pid_t pid = fork();
	if (!pid) {
		if (argc > 1) {
			c = ptrace(PTRACE_TRACEME, 0, 0, 0) ? errno : 0;
			raise(SIGSTOP);
			_exit(c);
		}
		_exit(read(p[0], &c, 1) == 1 ? 0 : 2);
	}
	if (argc > 1) {
		if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
			return 3;
		long r = ptrace(PTRACE_CONT, pid, 0, 0); // ESRCH: it is not ours
		if (r)
			kill(pid, SIGCONT);
		if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
			return 4;
		printf("%s\n", !r && WEXITSTATUS(status) == 0 ? "fine" : strerror(WEXITSTATUS(status)));
		return 0;
	}
	int r = ptrace(PTRACE_SEIZE, pid, 0, 0) ? errno : 0;
	if (write(p[1], "x", 1) != 1 || waitpid(pid, &status, 0) != pid || status)
		return 5;
	printf("%s\n", r ? strerror(r) : "fine");
	return 0;
}

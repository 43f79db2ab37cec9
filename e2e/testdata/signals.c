/* Gets signals of each kind, in a fixed order: handled, ignored, from a child, fatal to a child with an address, queued
 * with a value; then, with an argument, SIGUSR1 from outside, when the file of that name is there. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t handled;

static void handler(int sig) { handled = sig; }

static int child(void (*what)(void))
{
	int status;
	pid_t p = fork();

	if (!p) {
		what();
		_exit(0);
	}
	waitpid(p, &status, 0);
	return status;
}

static void fault(void) { *(volatile int *)0xdead000 = 1; }
static void terminated(void) { kill(getpid(), SIGHUP); }

int main(int argc, char **argv)
{
	struct sigaction a = { .sa_handler = handler };

	signal(SIGHUP, SIG_DFL); /* nohup(1) ignores it */
	sigaction(SIGTERM, &a, 0);
	sigaction(SIGUSR1, &a, 0);
	sigaction(SIGUSR2, &a, 0);
	kill(getpid(), SIGTERM);
	signal(SIGWINCH, SIG_IGN);
	kill(getpid(), SIGWINCH);
	if (!WIFSIGNALED(child(fault)) || !WIFSIGNALED(child(terminated)))
		return 1;
	sigqueue(getpid(), SIGUSR2, (union sigval){ .sival_int = 42 });
	if (argc > 1) {
		handled = 0;
		fclose(fopen(argv[1], "w"));
		while (handled != SIGUSR1)
			usleep(1000);
	}
	return 0;
}

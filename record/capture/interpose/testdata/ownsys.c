// SPDX-License-Identifier: Apache-2.0
// Runs while recordings of it begin and end. argv: directory [silent]. One thread raises SIGSYS, which it handles, another has
// it blocked, and a third has a handler that blocks it. It ends when the file "end" is there, with 7 if all was as it
// is without a recording. With a second argument it does not ask for masks and actions, and not for each signal: a
// recorder that is killed leaves the former changed, and takes a signal with it (docs/limits.md).
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *dir;
static volatile int over;
static int asks;
static int file;
static __thread volatile int handled, alarmed;

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		_exit(3);
	}
}

static void on_sys(int sig, siginfo_t *info, void *context)
{
	check(info->si_code == SI_TKILL, "siginfo");
	usleep(500);
	handled++;
}

static void on_usr(int sig)
{
	alarmed++;
}

static void *raiser(void *arg)
{
	unsigned long n;
	for (n = 0; !over; n++) {
		syscall(SYS_tgkill, getpid(), gettid(), SIGSYS);
		if (asks && handled != n + 1) {
			sigset_t now, pend;
			pthread_sigmask(SIG_BLOCK, 0, &now);
			sigpending(&pend);
			fprintf(stderr, "handled %d of %lu, blocked %d, pending %d\n", handled, n + 1, sigismember(&now, SIGSYS),
				sigismember(&pend, SIGSYS));
			_exit(4);
		}
		check(write(file, &n, 8) == 8, "write");
	}
	return 0;
}

static void *blocker(void *arg)
{
	sigset_t set, now;
	sigemptyset(&set);
	sigaddset(&set, SIGSYS);
	pthread_sigmask(SIG_BLOCK, &set, 0);
	while (!over) {
		pthread_sigmask(SIG_BLOCK, 0, &now);
		check(!asks || sigismember(&now, SIGSYS), "SIGSYS is not blocked");
		struct sigaction old;
		check(!asks || !sigaction(SIGSYS, 0, &old) && old.sa_sigaction == on_sys, "sigaction");
		usleep(300);
	}
	return 0;
}

static void *alarms(void *arg)
{
	for (int n = 0; !over; n++) {
		syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1);
		check(!asks || alarmed == n + 1, "alarmed");
		struct sigaction old;
		check(!asks || !sigaction(SIGUSR1, 0, &old) && sigismember(&old.sa_mask, SIGSYS), "sa_mask");
	}
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t t[3];
	void *(*work[])(void *) = {raiser, blocker, alarms};
	struct sigaction sys = {.sa_sigaction = on_sys, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigaction usr = {.sa_handler = on_usr};
	char name[4096];
	dir = argv[1];
	asks = argc == 2;
	snprintf(name, sizeof name, "%s/numbers", dir);
	check((file = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600)) >= 0, name);
	sigfillset(&usr.sa_mask);
	sigaction(SIGSYS, &sys, 0);
	sigaction(SIGUSR1, &usr, 0);
	for (int i = 0; i < 3; i++)
		check(!pthread_create(&t[i], 0, work[i], 0), "pthread_create");
	printf("ready\n");
	fclose(stdout);
	for (snprintf(name, sizeof name, "%s/end", dir); access(name, F_OK);)
		usleep(2000);
	over = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	return 7;
}

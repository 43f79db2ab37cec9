// SPDX-License-Identifier: Apache-2.0
// Prints what a program can see of its start: arguments, environment, auxiliary vector without
// addresses, descriptors, limits, signals; then executes itself once more.
#define _GNU_SOURCE
#include <dirent.h>
#include <elf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv)
{
	for (int i = 0; i < argc; i++)
		printf("argument %s\n", argv[i]);
	char **e = environ;
	for (; *e; e++)
		printf("environment %s\n", *e);
	for (Elf64_auxv_t *a = (Elf64_auxv_t *)(e + 1); a->a_type != AT_NULL; a++)
		switch (a->a_type) {
		case AT_RANDOM: case AT_PHDR: case AT_BASE: case AT_ENTRY: case AT_SYSINFO_EHDR: case AT_EXECFN: case AT_PLATFORM:
			printf("vector %ld\n", a->a_type);
			break;
		default:
			printf("vector %ld %#lx\n", a->a_type, a->a_un.a_val);
		}
	DIR *d = opendir("/proc/self/fd");
	for (struct dirent *x; (x = readdir(d));)
		printf("descriptor %s\n", x->d_name);
	closedir(d);
	for (int i = 0; i < RLIM_NLIMITS; i++) {
		struct rlimit l;
		getrlimit(i, &l);
		printf("limit %d %lx %lx\n", i, l.rlim_cur, l.rlim_max);
	}
	sigset_t set;
	sigprocmask(SIG_BLOCK, 0, &set);
	for (int sig = 1; sig < 65; sig++) {
		struct sigaction a;
		if (!sigaction(sig, 0, &a))
			printf("signal %d %d %d\n", sig, sigismember(&set, sig), a.sa_handler == SIG_DFL);
	}
	printf("dumpable %d, no new rights %d, umask %o\n", prctl(PR_GET_DUMPABLE), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), umask(0));
	fflush(stdout);
	if (argc < 3)
		execl(argv[0], argv[0], argv[1], "again", (char *)0);
	return 0;
}

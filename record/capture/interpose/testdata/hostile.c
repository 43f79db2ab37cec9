// SPDX-License-Identifier: Apache-2.0
// Works against what records it. argv[1] says how: unmap, overwrite, slots, limits.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static void handler(int sig) {}

struct range {
	unsigned long from, to;
	char perms[8];
};

// ours finds the mappings that are of shared memory named iotape.
static int ours(struct range *r, int most)
{
	char line[512];
	int n = 0;
	FILE *f = fopen("/proc/self/maps", "r");
	while (n < most && fgets(line, sizeof line, f))
		if (strstr(line, "memfd:iotape") && sscanf(line, "%lx-%lx %7s", &r[n].from, &r[n].to, r[n].perms) == 3)
			n++;
	fclose(f);
	return n;
}

int main(int argc, char **argv)
{
	struct range r[16];
	int n = ours(r, 16);
	for (int sig = 1; sig < 65; sig++)
		signal(sig, handler);
	if (!strcmp(argv[1], "unmap"))
		for (int i = 0; i < n; i++)
			munmap((void *)r[i].from, r[i].to - r[i].from);
	char *ring = 0; // the first of 256 of a MiB, at the end
	if (!strcmp(argv[1], "overwrite"))
		for (int i = 0; i < n; i++)
			if (r[i].perms[1] == 'w')
				ring = (char *)(r[i].to - (256 << 20));
	if (!strcmp(argv[1], "slots")) {
		signal(SIGSEGV, SIG_DFL);
		for (int i = 0; i < n; i++)
			if (r[i].perms[1] == 'w')
				memset((void *)r[i].from, 0xa5, 4096); // the first
	}
	if (!strcmp(argv[1], "limits")) {
		struct rlimit l = {8 << 20, 8 << 20};
		setrlimit(RLIMIT_AS, &l);
		l.rlim_cur = l.rlim_max = 4096;
		setrlimit(RLIMIT_FSIZE, &l);
		l.rlim_cur = l.rlim_max = 4;
		setrlimit(RLIMIT_NOFILE, &l);
	}
	for (int i = 0; i < 1000; i++)
		write(1, "x", 1), ring && memset(ring, 0xa5, 1 << 20);
	int p[2];
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	pipe(p);
	char b[4096] = {0};
	for (int i = 0; i < 20000; i++) {
		write(p[1], b, 512);
		read(p[0], b, 512);
		getppid();
	}
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	write(1, "end", 3);
	_exit(7);
}

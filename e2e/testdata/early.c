/* Opens its files, works on them for long, and ends as the second argument says:
 * end, crash, or wait: for SIGUSR2 while a little is written, and then for another.
 * The first argument is how many MiB are written. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 65536
#define BLOCKS 160

static volatile sig_atomic_t signals;

static void count(int sig)
{
	(void)sig;
	signals++;
}

static int work, number, again, dir;

static void step(long i)
{
	static char b[BLOCK], r[BLOCK];
	static unsigned seed = 1;
	char line[64];

	for (int k = 0; k < BLOCK; k += 4) {
		seed = seed * 1103515245 + 12345;
		memcpy(b + k, &seed, 4);
	}
	if (pwrite(number, b, BLOCK, i % BLOCKS * BLOCK) != BLOCK)
		exit(9);
	if (pread(number, r, BLOCK, i * 7 % (i < BLOCKS ? i + 1 : BLOCKS) * BLOCK) != BLOCK)
		exit(8);
	if (write(work, line, sprintf(line, "step %ld\n", i)) < 0)
		exit(7);
	if (i % 16 == 0) { /* one open file under two numbers */
		lseek(again, i % 100 * 100, SEEK_SET);
		if (read(number, r, 500) < 0 || read(again, r, 500) < 0)
			exit(6);
	}
	if (i % 64 == 0) {
		sprintf(line, "f%ld", i);
		int f = openat(dir, line, O_CREAT | O_WRONLY, 0666);
		if (write(f, line, strlen(line)) < 0)
			exit(5);
		close(f);
	}
}

int main(int argc, char **argv)
{
	long i, n = argc > 2 ? atol(argv[1]) * 16 : 0;
	FILE *f;

	signal(SIGUSR2, count);
	mkdir("d", 0755);
	if (!n || chdir("d"))
		return 2;
	work = open("log", O_CREAT | O_WRONLY | O_APPEND, 0644);
	number = open("data", O_CREAT | O_RDWR, 0644);
	again = dup(number);
	dir = open(".", O_DIRECTORY);
	umask(027);
	for (i = 0; i < n; i++)
		step(i);
	if (!strcmp(argv[2], "crash"))
		abort();
	if (strcmp(argv[2], "wait"))
		return 0;
	f = fopen("../pid", "w");
	fprintf(f, "%d", getpid());
	fclose(f);
	rename("../pid", "../ready");
	while (!signals) {
		step(i++);
		usleep(1000);
	}
	close(open("log/not-a-directory", O_RDONLY));
	usleep(100000);
	while (signals < 2)
		usleep(1000);
	return 0;
}

/* Processes that wait for each other by looking at shared memory again and again, which no
 * trace shows.
 *
 *   nodes turns     two write in turn
 *   nodes read      the same, and each reads what the other wrote last
 *   nodes barrier   three write, and wait for all after each write
 *   nodes chance    two write a number of bytes that is another one each time
 *   nodes forever   the second writes until the first is at its end
 *   nodes stop      the second waits for ever if the first is late
 *   nodes late      the second never ends
 *   nodes exec      a thread that is not the first executes the program again */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 4 };
static struct { atomic_int turn, arrived, phase, over; } *all;
static char block[4096];

static long long ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void compute(void)
{
	for (volatile long i = 0; i < 200000; i++)
		;
}

static void barrier(int n)
{
	int phase = atomic_load(&all->phase);
	if (atomic_fetch_add(&all->arrived, 1) == n - 1) {
		atomic_store(&all->arrived, 0);
		atomic_fetch_add(&all->phase, 1);
	}
	while (atomic_load(&all->phase) == phase)
		;
}

static void node(const char *what, int rank, int n, int fd)
{
	for (int i = 0; i < ROUNDS; i++) {
		if (!strcmp(what, "turns") || !strcmp(what, "read"))
			while (atomic_load(&all->turn) % n != rank)
				;
		if (!strcmp(what, "stop") && rank) {
			long long begin = ns();
			while (atomic_load(&all->turn) <= i)
				if (ns() - begin > 200000000)
					pause();
		}
		if (!strcmp(what, "read") && i + rank) {
			int other = open(rank ? "node.0" : "node.1", O_RDONLY);
			if (pread(other, block, sizeof block, (i - !rank) * sizeof block) != sizeof block || *block != 'a' + i - !rank)
				_exit(3);
			close(other);
		}
		memset(block, 'a' + i, sizeof block);
		compute();
		pwrite(fd, block, strcmp(what, "chance") ? sizeof block : 1 + ns() / 1000 % 4000, i * sizeof block);
		if (!strcmp(what, "barrier"))
			barrier(n);
		else if (strcmp(what, "stop") || !rank)
			atomic_fetch_add(&all->turn, 1);
	}
	if (!strcmp(what, "forever") && rank)
		while (!atomic_load(&all->over))
			compute(), pwrite(fd, block, sizeof block, 0);
	if (!strcmp(what, "late") && rank)
		for (;;)
			pause();
	if (!rank)
		atomic_store(&all->over, 1);
}

static void *execute(void *file)
{
	pwrite(*(int *)file, "2", 1, 1);
	execl("/proc/self/exe", "nodes", "executed", (char *)0);
	_exit(4);
}

/* exec works in a directory of its own, with a descriptor that the program inherits. */
static int exec(int again)
{
	if (!again) {
		mkdir("dir", 0755);
		if (chdir("dir"))
			return 5;
	}
	int fd = again ? 3 : open("first", O_RDWR | O_CREAT | O_TRUNC, 0644);
	pwrite(fd, again ? "34" : "1", 1 + again, 2 * again);
	if (again) {
		fd = open("second", O_RDWR | O_CREAT | O_TRUNC, 0644);
		return pwrite(fd, "5", 1, 0) != 1;
	}
	pthread_t t;
	pthread_create(&t, 0, execute, &fd);
	pthread_join(t, 0);
	return 3;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	if (!strcmp(argv[1], "exec") || !strcmp(argv[1], "executed"))
		return exec(argv[1][4] != 0);
	int n = !strcmp(argv[1], "barrier") ? 3 : 2, rank = 0;
	all = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 1; i < n && !rank; i++)
		if (!fork())
			rank = i;
	char name[] = "node.0";
	name[5] += rank;
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
	node(argv[1], rank, n, fd);
	if (!rank)
		while (wait(0) > 0)
			;
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* The parallel applications of //TRACE's evaluation (Mesnier et al., FAST 2007, section
 * 5.1), in plain POSIX and, with -DMPI, in MPI. Ranks of the former wait for each other in
 * the kernel, so that they do not take the processor from each other as those of MPI do.
 *
 *   apps calibrate                          prints loops per microsecond
 *   apps prepare APP DIR RANKS ROUNDS       makes the files that APP reads
 *   apps APP SYNC DIR RANKS ROUNDS LOOPS    runs it, prints how many ns it took
 *
 * APP:  pseudo         each rank writes its blocks of one file, then reads them
 *       pseudosync     the same, with a barrier after each block
 *       pseudosyncdat  with a barrier, and each rank reads what its neighbour wrote
 *       fitness        ranks read their files in turn
 *       quake          phases: a mesh is read and handed out, time steps with compute and
 *                      exchange, now and then a checkpoint, results gathered
 * SYNC: pipe, socket, futex (what barriers are made of), or spin (on shared memory, which
 *       no trace shows); mpi
 * LOOPS is the computing before each block. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef MPI
#include <mpi.h>
#endif

enum { BLOCK = 64 << 10, MAX_RANKS = 64, TURN = 8 };

static int rank, ranks, rounds;
static long loops;
static const char *dir, *sync_by;
static char *block;
#ifndef MPI
static int up[MAX_RANKS][2], down[MAX_RANKS][2]; /* between rank 0 and the others */
static int ring[MAX_RANKS][2];                   /* from each rank to the next */
static struct {
	atomic_int arrived, phase;
} *shared;
#endif

static void die(const char *what)
{
	fprintf(stderr, "apps: %s: %s\n", what, strerror(errno));
#ifndef MPI
	if (rank)
		kill(getppid(), SIGKILL); /* the others would wait for ever */
#endif
	exit(1);
}

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* A fixed amount of work, which takes the same time whoever else is on the machine: each
 * step waits for the one before, and little of the core is used meanwhile. A loop of empty
 * steps takes twice as long when a neighbour has the core's other thread, one in memory
 * when the processor guesses wrong where the value is. */
static void compute(long n)
{
	unsigned long v = 3;

	for (long i = 0; i < n; i += 8)
#pragma GCC unroll 8
		for (int k = 0; k < 8; k++) {
			v *= 0x9e3779b97f4a7c15;
			__asm__ volatile("" : "+r"(v));
		}
}

#ifndef MPI
static void put(int fd, const void *b, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t k = write(fd, (const char *)b + done, n - done);
		if (k <= 0)
			die("write to a rank");
		done += k;
	}
}

static void get(int fd, void *b, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t k = read(fd, (char *)b + done, n - done);
		if (k <= 0)
			die("read from a rank");
		done += k;
	}
}

/* Ways between ranks: to rank 0, from it, and to the next one. */
enum { UP, DOWN, RING };

static void send_to(int way, int to, const void *b, size_t n)
{
	put(way == UP ? up[rank][1] : way == DOWN ? down[to][1] : ring[to][1], b, n);
}

static void receive_from(int way, int from, void *b, size_t n)
{
	get(way == UP ? up[from][0] : way == DOWN ? down[rank][0] : ring[rank][0], b, n);
}

/* All ranks wait for the last. */
static void barrier(void)
{
	char c = 0;
	if (*sync_by == 'p' || !strcmp(sync_by, "socket")) {
		if (rank) {
			put(up[rank][1], &c, 1);
			get(down[rank][0], &c, 1);
			return;
		}
		for (int i = 1; i < ranks; i++)
			get(up[i][0], &c, 1);
		for (int i = 1; i < ranks; i++)
			put(down[i][1], &c, 1);
		return;
	}
	int phase = atomic_load(&shared->phase);
	if (atomic_fetch_add(&shared->arrived, 1) == ranks - 1) {
		atomic_store(&shared->arrived, 0);
		atomic_fetch_add(&shared->phase, 1);
		if (*sync_by == 'f')
			syscall(SYS_futex, &shared->phase, FUTEX_WAKE, INT_MAX, 0, 0, 0);
		return;
	}
	for (long looks = 1; atomic_load(&shared->phase) == phase; looks++)
		if (*sync_by == 'f')
			syscall(SYS_futex, &shared->phase, FUTEX_WAIT, phase, 0, 0, 0);
		else if (looks % 100000 == 0)
			sched_yield(); /* now and then: there may be fewer processors than ranks */
}

static void channel(int fd[2])
{
	int kind = !strcmp(sync_by, "socket");
	if (kind ? socketpair(AF_UNIX, SOCK_STREAM, 0, fd) : pipe(fd))
		die("channel");
	if (kind) { /* read from the first, write to the second, as with a pipe */
		shutdown(fd[0], SHUT_WR);
		shutdown(fd[1], SHUT_RD);
	}
}

#else
enum { UP, DOWN, RING };

static void send_to(int way, int to, const void *b, size_t n) { MPI_Send(b, n, MPI_BYTE, to, way, MPI_COMM_WORLD); }

static void receive_from(int way, int from, void *b, size_t n)
{
	MPI_Recv(b, n, MPI_BYTE, from, way, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }
#endif

static int file(const char *name, int n, int flags)
{
	char path[4096];
	snprintf(path, sizeof path, n < 0 ? "%s/%s" : "%s/%s.%d", dir, name, n);
	int fd = open(path, flags | O_DIRECT | O_CLOEXEC, 0644);
	if (fd < 0 && errno == EINVAL)
		fd = open(path, flags | O_CLOEXEC, 0644);
	if (fd < 0)
		die(path);
	return fd;
}

static void store(int fd, long long n)
{
	if (pwrite(fd, block, BLOCK, n * BLOCK) != BLOCK)
		die("write");
}

static void load(int fd, long long n)
{
	if (pread(fd, block, BLOCK, n * BLOCK) != BLOCK)
		die("read");
}

static void pseudo(int barriers, int neighbour)
{
	int fd = file("data", -1, O_RDWR | O_CREAT);
	for (int i = 0; i < rounds; i++) {
		compute(loops);
		store(fd, (long long)i * ranks + rank);
		if (barriers)
			barrier();
		if (neighbour) {
			load(fd, (long long)i * ranks + (rank + 1) % ranks);
			barrier();
		}
	}
	for (int i = 0; i < rounds && !neighbour; i++) {
		load(fd, (long long)i * ranks + rank);
		compute(loops);
		if (barriers)
			barrier();
	}
	close(fd);
}

/* TURN blocks each, one rank after the other. */
static void fitness(void)
{
	char token = 1;
	int fd = file("input", rank, O_RDONLY);
	for (int i = 0; i < rounds; i += TURN) {
		if (rank || i)
			receive_from(RING, (rank + ranks - 1) % ranks, &token, 1);
		for (int k = i; k < i + TURN && k < rounds; k++)
			load(fd, k);
		compute(loops);
		if (rank != ranks - 1 || i + TURN < rounds)
			send_to(RING, (rank + 1) % ranks, &token, 1);
	}
	close(fd);
}

static void quake(void)
{
	if (!rank) { /* the mesh: a part for each */
		int fd = file("input", 0, O_RDONLY);
		for (int i = 0; i < rounds; i++) {
			load(fd, i);
			if (i % ranks)
				send_to(DOWN, i % ranks, block, BLOCK);
		}
		close(fd);
	} else {
		for (int i = rank; i < rounds; i += ranks)
			receive_from(DOWN, 0, block, BLOCK);
	}
	int fd = file("checkpoint", rank, O_RDWR | O_CREAT);
	for (int i = 0; i < rounds; i++) {
		compute(loops * (1 + (i + rank) % 3)); /* not all parts are the same */
		if (ranks > 1) {
			send_to(RING, (rank + 1) % ranks, block, 1024);
			receive_from(RING, (rank + ranks - 1) % ranks, block, 1024);
		}
		if (i % 4 == 3) {
			store(fd, i / 4);
			if (i % 16 == 15)
				fdatasync(fd);
			barrier();
		}
	}
	close(fd);
	if (rank) {
		send_to(UP, 0, block, BLOCK);
		return;
	}
	fd = file("result", -1, O_RDWR | O_CREAT);
	store(fd, 0);
	for (int i = 1; i < ranks; i++) {
		receive_from(UP, i, block, BLOCK);
		store(fd, i);
	}
	close(fd);
}

static void run(const char *app)
{
	if (!strcmp(app, "pseudo"))
		pseudo(0, 0);
	else if (!strcmp(app, "pseudosync"))
		pseudo(1, 0);
	else if (!strcmp(app, "pseudosyncdat"))
		pseudo(1, 1);
	else if (!strcmp(app, "fitness"))
		fitness();
	else if (!strcmp(app, "quake"))
		quake();
	else {
		fprintf(stderr, "apps: there is no application %s\n", app);
		exit(2);
	}
}

static void prepare(const char *app)
{
	int files = !strcmp(app, "fitness") ? ranks : !strcmp(app, "quake");
	for (int r = 0; r < files; r++) {
		int fd = file("input", r, O_WRONLY | O_CREAT);
		for (int i = 0; i < rounds; i++)
			store(fd, i);
		fdatasync(fd);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "calibrate")) {
		compute(100000000);
		long long begin = now();
		compute(400000000);
		printf("%lld\n", 400000000 * 1000LL / (now() - begin));
		return 0;
	}
	int preparing = argc == 6 && !strcmp(argv[1], "prepare");
	if (!preparing && argc != 7) {
		fprintf(stderr, "usage: apps calibrate | prepare APP DIR RANKS ROUNDS | APP SYNC DIR RANKS ROUNDS LOOPS\n");
		return 2;
	}
	sync_by = preparing ? "pipe" : argv[2];
	dir = argv[3], ranks = atoi(argv[4]), rounds = atoi(argv[5]);
	if (!preparing)
		loops = atol(argv[6]);
	if (ranks < 1 || ranks > MAX_RANKS || rounds < 1) {
		fprintf(stderr, "apps: 1 to %d ranks, 1 round or more\n", MAX_RANKS);
		return 2;
	}
	if (posix_memalign((void **)&block, 4096, BLOCK))
		die("memory");
	memset(block, 'x', BLOCK);
	if (preparing) {
		prepare(argv[2]);
		return 0;
	}
#ifdef MPI
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	run(argv[1]);
	MPI_Finalize();
	return 0;
#else
	shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("memory");
	for (int i = 0; i < ranks; i++) {
		channel(up[i]);
		channel(down[i]);
		channel(ring[i]);
	}
	pid_t first = getpid();
	long long begin = now();
	for (rank = ranks - 1; rank > 0; rank--) {
		pid_t child = fork();
		if (child < 0)
			die("fork");
		if (!child) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != first) /* it was gone before */
				_exit(1);
			run(argv[1]);
			_exit(0);
		}
	}
	run(argv[1]);
	int bad = 0, status;
	while (wait(&status) > 0)
		bad |= status;
	printf("%lld\n", now() - begin);
	return bad != 0;
#endif
}

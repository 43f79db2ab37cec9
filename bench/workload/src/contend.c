// SPDX-License-Identifier: Apache-2.0
// contend [ROUNDS]: four threads race for six names and three files.
//
// Which of them comes first the kernel decides, call by call; only the results tell.
// Each thread draws its calls from a generator of its own, so a run is the same but for
// the races. What a call returns is not looked at: most of them fail now and then.
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { threads = 4, names = 6, page = 4096 };

static int rounds = 400;
static pthread_barrier_t start;
static int shared; // read and written at the position that all share

static const char *const name[names] = {"d/a", "d/b", "d/c", "d/e", "d/f", "d/g"};
static const char *const file[3] = {"f0", "f1", "f2"};
static const char *const dir[2] = {"d/x", "d/x/y"};

static uint32_t draw(uint64_t *state, uint32_t below) {
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % below;
}

// names_of works on names alone.
static void names_of(uint64_t *s) {
	const char *a = name[draw(s, names)], *b = name[draw(s, names)];
	char buf[256];
	struct stat st;
	int fd = -1;
	switch (draw(s, 16)) {
	case 0: fd = open(a, O_RDWR | O_CREAT, 0644); break;
	case 1: fd = open(a, O_RDWR | O_CREAT | O_EXCL, 0644); break;
	case 2: fd = open(a, O_WRONLY | O_CREAT | O_TRUNC, 0644); break;
	case 3: fd = open(a, O_RDONLY); break;
	case 4: case 5: unlink(a); break;
	case 6: rename(a, b); break;
	case 7: link(a, b); break;
	case 8: symlink(b + 2, a); break;
	case 9: (void)!readlink(a, buf, sizeof buf); break;
	case 10: stat(a, &st); break;
	case 11: lstat(a, &st); break;
	case 12: access(a, R_OK); break;
	case 13: mkdir(dir[draw(s, 2)], 0755); break;
	case 14: rmdir(dir[draw(s, 2)]); break;
	case 15: renameat2(AT_FDCWD, a, AT_FDCWD, b, 1 /* RENAME_NOREPLACE */); break;
	}
	if (fd >= 0) {
		if (draw(s, 2))
			(void)!write(fd, a, strlen(a));
		fstat(fd, &st);
		close(fd);
	}
}

// files_of works on sizes, positions and content.
static void files_of(uint64_t *s, int me, int n) {
	const char *f = file[draw(s, 3)];
	static __thread char b[4 * page];
	struct stat st;
	memset(b, 'a' + me, sizeof b);
	snprintf(b, sizeof b, "%d.%d", me, n);
	off_t at = (off_t)draw(s, 8) * page;
	int fd = open(f, O_RDWR | (draw(s, 4) == 0 ? O_APPEND : 0));
	if (fd < 0)
		return;
	switch (draw(s, 10)) {
	case 0: (void)!pwrite(fd, b, page, at); break;
	case 1: (void)!pwrite(fd, b, 100, at + 50); break;
	case 2: (void)!pread(fd, b, page, at); break;
	case 3: (void)!pread(fd, b, 2 * page, at); break;
	case 4: (void)!ftruncate(fd, at + draw(s, page)); break;
	case 5: (void)!truncate(f, at); break;
	case 6: (void)!write(fd, b, 200 + draw(s, 300)); break;
	case 7: lseek(fd, 0, SEEK_END); break;
	case 8: fstat(fd, &st); break;
	case 9: stat(f, &st); break;
	}
	switch (draw(s, 6)) {
	case 0: (void)!write(shared, b, 64); break;
	case 1: (void)!read(shared, b, 64); break;
	case 2: lseek(shared, draw(s, 1024), SEEK_SET); break;
	case 3: fstat(fd, &st); break;
	}
	close(fd);
}

static void *racer(void *arg) {
	int me = (int)(long)arg;
	uint64_t state = 77 + me;
	pthread_barrier_wait(&start);
	for (int i = 0; i < rounds; i++)
		if (draw(&state, 2))
			names_of(&state);
		else
			files_of(&state, me, i);
	return NULL;
}

int main(int argc, char **argv) {
	pthread_t t[threads];
	if (argc > 1)
		rounds = atoi(argv[1]);
	if (mkdir("d", 0755))
		err(1, "mkdir d");
	for (int i = 0; i < 3; i++) {
		int fd = open(file[i], O_RDWR | O_CREAT | O_EXCL, 0644);
		if (fd < 0)
			err(1, "open %s", file[i]);
		close(fd);
	}
	if ((shared = open("shared", O_RDWR | O_CREAT, 0644)) < 0)
		err(1, "open shared");
	pthread_barrier_init(&start, NULL, threads);
	for (long i = 0; i < threads; i++)
		if (pthread_create(&t[i], NULL, racer, (void *)i))
			errx(1, "pthread_create");
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
	return 0;
}

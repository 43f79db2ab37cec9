/* Four threads that write when the file "go" is there. Its output, its process, ends when they run.
 *
 *	waiting_threads DIR
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *writer(void *p)
{
	int i, fd = open("out", O_WRONLY | O_CREAT, 0666);

	while (access("go", F_OK))
		usleep(2000);
	for (i = 0; i < 100; i++)
		if (pwrite(fd, "0123456789", 10, 0) != 10)
			_exit(3);
	return 0;
}

int main(int argc, char **argv)
{
	pthread_t t[4];
	int i;

	if (argc != 2 || chdir(argv[1]))
		return 2;
	for (i = 0; i < 4; i++)
		if (pthread_create(&t[i], 0, writer, 0))
			return 3;
	printf("%d\n", getpid());
	fclose(stdout);
	fclose(stderr);
	for (i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	return 0;
}

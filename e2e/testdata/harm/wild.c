/* A program that goes wild: wild RATE SECONDS QUIET. After QUIET seconds of a few calls it
 * makes and removes a file, RATE times a second, for SECONDS. */
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void once(const char *name, int rate)
{
	struct timespec pause = {0, 1000000000 / rate};
	int fd = open(name, O_CREAT | O_WRONLY, 0600);

	if (fd < 0 || write(fd, "wild", 4) != 4 || close(fd) || unlink(name))
		_exit(1);
	nanosleep(&pause, 0);
}

int main(int argc, char **argv)
{
	int rate = atoi(argv[1]), seconds = atoi(argv[2]), quiet = atoi(argv[3]);

	for (int i = 0; i < 5 * quiet; i++)
		once("calm.tmp", 5);
	for (time_t end = time(0) + seconds; time(0) < end;)
		once("wild.tmp", rate);
	return 0;
}

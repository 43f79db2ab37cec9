// answers FILE reads bytes from its standard input, one by one. For each it reads one byte
// and two bytes of FILE in turn, seeks as often, and writes the byte to its standard output.
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int fd = open(argv[1], O_RDONLY);
	char c, b[2];

	while (read(0, &c, 1) == 1) {
		for (int i = 0; i < 10; i++) {
			if (pread(fd, b, 1 + i % 2, 0) < 0 || lseek(fd, i, SEEK_SET) != i)
				return 1;
		}
		if (write(1, &c, 1) != 1)
			return 1;
	}
	return 0;
}

// secret FILE: says what user it is and whether it may read FILE. Installed setuid root
// it may read what its user may not.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	printf("uid %s, secret %s\n", geteuid() == 0 ? "0" : "user", argc > 1 && open(argv[1], O_RDONLY) >= 0 ? "read" : "refused");
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Calls functions of a file that it maps, unmaps that, makes code of its own at the same place, and calls it: its system
// calls are where those of the file were, and where the file had padding it has instructions. It writes to descriptor 1.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FUNCTIONS 8
__asm__(".text\n.p2align 12\nfunctions:\n"
	".rept 8\n.p2align 6\n.cfi_startproc\nmov $1, %eax\nsyscall\nret\n.cfi_endproc\n.p2align 6\n.endr\n.p2align 12\n");
extern const char functions[], __executable_start[];
typedef long (*function)(int fd, const void *b, unsigned long n);

int main(void)
{
	// mov $1, %eax; syscall; add $1, %rax, ten times; ret
	static const unsigned char begin[] = {0xb8, 1, 0, 0, 0, 0x0f, 5}, add[] = {0x48, 0x83, 0xc0, 1};
	unsigned char made[4096];
	long offset = functions - __executable_start, bad = 0;
	struct stat st;
	int fd = open("/proc/self/exe", O_RDONLY);
	fstat(fd, &st);
	for (int round = 0; round < 2; round++) {
		char *file = mmap(0, st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		for (int i = 0; i < FUNCTIONS; i++)
			for (int k = 0; k < 3; k++)
				bad += ((function)(file + offset + 64 * i))(1, "f", 1) != 1;
		munmap(file, st.st_size);
		char *page = mmap(file + offset, sizeof made, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		if (page != file + offset)
			return 2;
		memset(made, 0xc3, sizeof made); // ret
		for (int i = 0; i < FUNCTIONS; i++) {
			unsigned char *to = made + 64 * i;
			memcpy(to, begin, sizeof begin);
			for (int k = 0; k < 10; k++)
				memcpy(to + sizeof begin + 4 * k, add, sizeof add);
		}
		memcpy(page, made, sizeof made);
		mprotect(page, sizeof made, PROT_READ | PROT_EXEC);
		for (int i = 0; i < FUNCTIONS; i++)
			for (int k = 0; k < 3; k++)
				bad += ((function)(page + 64 * i))(1, "m", 1) != 11;
		bad += 1000 * (memcmp(page, made, sizeof made) != 0);
		munmap(page, sizeof made);
	}
	// When our code leaves it, for what it does with GS, nothing is put back where the file was.
	char *file = mmap(0, st.st_size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	((function)(file + offset))(1, "f", 1);
	munmap(file, st.st_size);
	char *page = mmap(file + offset, sizeof made, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (page != file + offset)
		return 3;
	memset(page, 0xc3, sizeof made);
	memset(made, 0xc3, sizeof made);
	syscall(SYS_arch_prctl, 0x1001 /* ARCH_SET_GS */, 0);
	bad += 1000 * (memcmp(page, made, sizeof made) != 0);
	return bad > 100 ? 100 : bad;
}

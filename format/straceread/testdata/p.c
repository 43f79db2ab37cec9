#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <poll.h>
#include <unistd.h>
#include <string.h>
static void *th(void *p) { struct stat s; stat("f", &s); sleep(0); return 0; }
int main(void) {
  struct stat st; char b[64]; int p[2];
  mkdir("d", 0755);
  int f = open("f", O_RDWR | O_CREAT | O_TRUNC, 0640);
  write(f, "hello\0\377world\n", 13);
  struct iovec v[2] = {{"one", 3}, {"\"two\"\\", 6}};
  writev(f, v, 2);
  lseek(f, 0, SEEK_SET);
  read(f, b, 64);
  fstat(f, &st);
  rename("f", "d/a>b");
  open("missing", O_RDONLY);
  pipe(p);
  write(p[1], "x", 1);
  struct pollfd pf = {p[0], POLLIN, 0};
  poll(&pf, 1, 100);
  read(p[0], b, 64);
  int s = socket(AF_INET, SOCK_DGRAM, 0);
  struct sockaddr_in a = {AF_INET, htons(9), {htonl(0x7f000001)}};
  sendto(s, "dgram", 5, 0, (void *)&a, sizeof a);
  int u[2]; socketpair(AF_UNIX, SOCK_STREAM, 0, u);
  struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
  sendmsg(u[0], &m, 0);
  recv(u[1], b, 64, 0);
  pthread_t t; pthread_create(&t, 0, th, 0); pthread_join(t, 0);
  pid_t c = fork();
  if (c == 0) { write(f, "child", 5); unlink("d/a>b"); usleep(2000); kill(getpid(), SIGKILL); }
  int status; wait4(c, &status, 0, 0);
  pwrite(f, "z", 1, 100);
  ftruncate(f, 50);
  close(f);
  return 3;
}

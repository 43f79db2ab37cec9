/* Waiting, time and signals. */
#include "expect.h"
#include <linux/futex.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <sys/times.h>
#include <time.h>

static unsigned char b[4096];
static volatile int signals;
static int self;
static void handler(int s) { signals += s; }

static void descriptors(void)
{
	uint64_t mask = 1 << (SIGUSR1 - 1), one = 1;
	struct timespec zero = {0, 0}, ts, before;
	struct timeval tv, tvbefore;
	int p[2], e, ep;
	long r;

	if (pipe(p) || write(p[1], "x", 1) != 1)
		exit(1);
	say("call pipe2 %d 0 %lx 0 * * * *\nmem 0 ", SYS_pipe2, P(p));
	hex(p, 8), fd(p[0]), fd(p[1]);
	say("call write %d 1 %x * 1 * * *\nmem 1 78\n", SYS_write, p[1]);

	struct pollfd f[2] = {{p[0], POLLIN, 0}, {p[1], POLLOUT, 0}};
	ts = before = (struct timespec){5, 0};
	CALL(ppoll, P(f), 2, P(&ts), P(&mask), 8);
	mem(0, f, sizeof(f)), mem(2, &ts, 16), mem(2 | BEFORE, &before, 16), mem(3, &mask, 8);
	fd_set in, out, inBefore, outBefore;
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(p[0], &in);
	FD_SET(p[1], &in);
	FD_SET(p[1], &out);
	inBefore = in, outBefore = out;
	struct {
		const void *set;
		size_t size;
	} sigs = {&mask, 8};
	ts = before = (struct timespec){7, 0};
	CALL(pselect6, p[1] + 1, P(&in), P(&out), 0, P(&ts), P(&sigs));
	mem(1, &in, 8), mem(1 | BEFORE, &inBefore, 8), mem(2, &out, 8), mem(2 | BEFORE, &outBefore, 8);
	mem(4, &ts, 16), mem(4 | BEFORE, &before, 16), mem(5, &sigs, 16), mem(5 | TARGET, &mask, 8);
#ifdef SYS_poll
	CALL(poll, P(f), 2, 0);
	mem(0, f, sizeof(f));
	in = inBefore;
	tv = tvbefore = (struct timeval){9, 0};
	CALL(select, p[1] + 1, P(&in), 0, 0, P(&tv));
	mem(1, &in, 8), mem(1 | BEFORE, &inBefore, 8), mem(4, &tv, 16), mem(4 | BEFORE, &tvbefore, 16);
#endif
	CALL(ppoll, 0, 0, P(&zero), 0, 8);
	mem(2, &zero, 16), mem(2 | BEFORE, &zero, 16);

	ep = CALL(epoll_create1, EPOLL_CLOEXEC);
	struct epoll_event ev = {.events = EPOLLIN, .data.u64 = 0x1122334455667788}, got[10];
	CALL(epoll_ctl, ep, EPOLL_CTL_ADD, p[0], P(&ev));
	mem(3, &ev, sizeof(ev));
	r = CALL(epoll_pwait, ep, P(got), 10, -1, P(&mask), 8);
	mem(1, got, r * sizeof(*got)), mem(4, &mask, 8);
	r = CALL(epoll_pwait2, ep, P(got), 10, P(&zero), 0, 8);
	mem(1, got, r * sizeof(*got)), mem(3, &zero, 16);
	e = CALL(eventfd2, 7, 0);
	CALL(epoll_ctl, ep, EPOLL_CTL_ADD, e, P(&ev));
	mem(3, &ev, sizeof(ev));
	CALL(write, e, P(&one), 8);
	mem(1, &one, 8);
#ifdef SYS_epoll_wait
	r = CALL(epoll_wait, ep, P(got), 10, 0);
	mem(1, got, r * sizeof(*got));
	CALL(epoll_create, 1);
	CALL(eventfd, 0);
	CALL(inotify_init);
	CALL(signalfd, -1, P(&mask), 8);
	mem(1, &mask, 8);
#endif
	CALL(signalfd4, -1, P(&mask), 8, 0);
	mem(1, &mask, 8);
	struct itimerspec it = {{0, 0}, {100, 5}}, old;
	r = CALL(timerfd_create, CLOCK_MONOTONIC, 0);
	CALL(timerfd_settime, r, 0, P(&it), P(&old));
	mem(2, &it, 32), mem(3, &old, 32);
	CALL(timerfd_gettime, r, P(&old));
	mem(1, &old, 32);
	r = CALL(inotify_init1, 0);
	CALL(inotify_add_watch, r, P("."), IN_CREATE);
	path(1, ".");
	CALL(inotify_rm_watch, r, 1);
	r = CALL(fanotify_init, 0, 0);
	CALL(fanotify_mark, r, 1, 2, AT_FDCWD, P("."));
	path(4, ".");
	CALL(userfaultfd, 1);
	CALL(perf_event_open, P(b), 0, -1, -1, 0);
	mem(0, b, 64);
}

static void futexes(void)
{
	struct timespec ts = {0, 1000};
	uint32_t word = 5;

	CALL(futex, P(&word), FUTEX_WAKE, 1, 0xdead, 0, 0); /* its timeout is a number */
	CALL(futex, P(&word), FUTEX_WAIT | FUTEX_PRIVATE_FLAG, 5, P(&ts), 0, 0);
	mem(3, &ts, 16);
	CALL(futex, P(&word), FUTEX_WAIT, 6, 0, 0, 0);
	struct {
		uint64_t val, addr;
		uint32_t flags, zero;
	} w[2] = {{5, P(&word), 2, 0}, {6, P(&word), 2, 0}};
	CALL(futex_waitv, P(w), 2, 0, P(&ts), CLOCK_MONOTONIC);
	mem(0, w, sizeof(w)), mem(3, &ts, 16);
	CALL(futex_wait, P(&word), 6, -1, 2, P(&ts), CLOCK_MONOTONIC);
	mem(4, &ts, 16);
	CALL(futex_wake, P(&word), -1, 1, 2);
	CALL(futex_requeue, P(w), 0, 1, 1);
	mem(0, w, 48);
	CALL(sched_yield);
}

static void times_(void)
{
	struct timespec ts = {0, 1000}, got;
	struct timeval tv;
	struct timezone tz;
	struct timex tx = {0};
	struct tms t;
	time_t now;

	CALL(nanosleep, P(&ts), P(&got)); /* not interrupted: nothing remains */
	mem(0, &ts, 16);
	CALL(clock_nanosleep, CLOCK_MONOTONIC, 0, P(&ts), 0);
	mem(2, &ts, 16);
	CALL(clock_gettime, CLOCK_REALTIME, P(&got));
	mem(1, &got, 16);
	CALL(clock_gettime, 12345, P(&got)); /* EINVAL */
	CALL(clock_getres, CLOCK_REALTIME, P(&got));
	mem(1, &got, 16);
	CALL(gettimeofday, P(&tv), P(&tz));
	mem(0, &tv, 16), mem(1, &tz, 8);
	CALL(times, P(&t));
	mem(0, &t, sizeof(t));
#ifdef SYS_time
	CALL(time, P(&now));
	mem(0, &now, 8);
	CALL(alarm, 0);
#endif
	CALL(adjtimex, P(&tx));
	mem(0, &tx, 208);
	CALL(clock_adjtime, CLOCK_REALTIME, P(&tx));
	mem(1, &tx, 208);
	CALL(clock_settime, 12345, P(&ts));
	mem(1, &ts, 16);
	CALL(settimeofday, 0, 0);

	struct itimerval it = {{0, 0}, {0, 0}}, old;
	CALL(setitimer, ITIMER_REAL, P(&it), P(&old));
	mem(1, &it, 32), mem(2, &old, 32);
	CALL(getitimer, ITIMER_REAL, P(&old));
	mem(1, &old, 32);
	struct sigevent se = {.sigev_notify = SIGEV_NONE};
	struct itimerspec is = {{0, 0}, {100, 0}}, was;
	int id = 0;
	CALL(timer_create, CLOCK_MONOTONIC, P(&se), P(&id));
	mem(1, &se, 64), mem(2, &id, 4);
	CALL(timer_settime, id, 0, P(&is), P(&was));
	mem(2, &is, 32), mem(3, &was, 32);
	CALL(timer_gettime, id, P(&was));
	mem(1, &was, 32);
	CALL(timer_getoverrun, id);
	CALL(timer_delete, id);
}

static void signals_(void)
{
	struct {
		void (*handler)(int);
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} act, old;
	uint64_t set = 1 << (SIGUSR1 - 1), was, none = 0;
	struct timespec zero = {0, 0}, hundred = {0, 50000000}, left = {0};
	stack_t ss = {0}, oss;
	siginfo_t si = {0};

	signal(SIGUSR1, handler); /* the C library knows how to return */
	say("call rt_sigaction %d 0 a * * 8 * *\nany 1\nany 2\n", SYS_rt_sigaction);
	CALL(rt_sigaction, SIGUSR1, 0, P(&old), 8);
	mem(2, &old, 32);
	act = old;
	CALL(rt_sigaction, SIGUSR2, P(&act), P(&old), 8);
	mem(1, &act, 32), mem(2, &old, 32);
	CALL(rt_sigprocmask, SIG_BLOCK, P(&set), P(&was), 8);
	mem(1, &set, 8), mem(2, &was, 8);
	CALL(kill, self, SIGUSR1);
	CALL(rt_sigpending, P(&was), 8);
	mem(0, &was, 8);
	CALL(rt_sigtimedwait, P(&set), P(&si), P(&zero), 8);
	mem(0, &set, 8), mem(1, &si, 128), mem(2, &zero, 16);
	CALL(tgkill, self, self, SIGUSR1);
	size_t at = length;
	CALL(rt_sigsuspend, P(&none), 8);
	length = at; /* the kernel's own result is ERESTARTNOHAND */
	say("call rt_sigsuspend %d -514 %lx 8 0 0 0 0\n", SYS_rt_sigsuspend, P(&none));
	mem(0, &none, 8);
	say("call rt_sigreturn %d ? * * * * * *\n", SYS_rt_sigreturn);
	CALL(rt_sigprocmask, SIG_UNBLOCK, P(&set), 0, 8);
	mem(1, &set, 8);
	si.si_code = -1;
	CALL(rt_sigqueueinfo, self, 0, P(&si));
	mem(2, &si, 128);
	CALL(rt_tgsigqueueinfo, self, self, 0, P(&si));
	mem(3, &si, 128);
	CALL(tkill, self, 0);
	CALL(sigaltstack, P(&ss), P(&oss));
	mem(0, &ss, sizeof(ss)), mem(1, &oss, sizeof(oss));

	/* a sleep that a signal ends says what remains */
	struct itimerval it = {{0, 0}, {0, 1000}};
	act.flags &= ~0x10000000ul; /* SA_RESTART */
	CALL(rt_sigaction, SIGALRM, P(&act), 0, 8);
	mem(1, &act, 32);
	CALL(setitimer, ITIMER_REAL, P(&it), 0);
	mem(1, &it, 32);
	at = length;
	long r = CALL(nanosleep, P(&hundred), P(&left));
	length = at; /* the kernel's own result is ERESTART_RESTARTBLOCK */
	say("call nanosleep %d %d %lx %lx 0 0 0 0\n", SYS_nanosleep, r == -EINTR ? -516 : 0, P(&hundred), P(&left));
	mem(0, &hundred, 16);
	if (r < 0)
		mem(1, &left, 16);
	say("call rt_sigreturn %d ? * * * * * *\n", SYS_rt_sigreturn);
}

int main(void)
{
	self = getpid();
	start();
	descriptors();
	futexes();
	times_();
	signals_();
	return finish();
}

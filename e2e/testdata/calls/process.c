/* Processes and identity, memory, what the machine says of itself. */
#include "expect.h"
#include <linux/futex.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/wait.h>

static int self, uid, gid;
static unsigned char b[65536];

static void identity(void)
{
	uint32_t r, e, s, groups[64];
	long n;

	CALL(getpid);
	CALL(gettid);
	CALL(getppid);
	CALL(getpgid, 0);
	CALL(getsid, 0);
	CALL(getuid);
	CALL(geteuid);
	CALL(getgid);
	CALL(getegid);
#ifdef SYS_getpgrp
	CALL(getpgrp);
#endif
	CALL(getresuid, P(&r), P(&e), P(&s));
	mem(0, &r, 4), mem(1, &e, 4), mem(2, &s, 4);
	CALL(getresgid, P(&r), P(&e), P(&s));
	mem(0, &r, 4), mem(1, &e, 4), mem(2, &s, 4);
	groups[0] = 7, groups[1] = 8;
	if (CALL(setgroups, 2, P(groups)) >= 0)
		mem(1, groups, 8);
	else
		mem(1, groups, 8);
	CALL(getgroups, 0, P(groups)); /* only how many */
	n = CALL(getgroups, 64, P(groups));
	mem(1, groups, n * 4);
	CALL(setuid, uid);
	CALL(setgid, gid);
	CALL(setreuid, -1, -1);
	CALL(setregid, -1, -1);
	CALL(setresuid, -1, -1, -1);
	CALL(setresgid, -1, -1, -1);
	CALL(setfsuid, -1);
	CALL(setfsgid, -1);
	CALL(setpgid, 0, 0);
	CALL(setsid); /* EPERM: leads a group */
	struct {
		uint32_t version;
		int pid;
	} head = {0x20080522, 0};
	uint32_t caps[6];
	CALL(capget, P(&head), P(caps));
	mem(0, &head, 8), mem(1, caps, 24);
	CALL(capset, P(&head), P(caps));
	mem(0, &head, 8), mem(1, caps, 24);
	CALL(unshare, CLONE_FS);
	CALL(setns, -1, 0);
	CALL(personality, 0xffffffff);
}

static void children(void)
{
	struct {
		uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid, set_tid_size, cgroup;
	} args = {.exit_signal = SIGCHLD};
	struct rusage ru;
	siginfo_t si;
	int status, pidfd;
	long pid, f;

	pid = CALL(clone3, P(&args), sizeof(args));
	if (!pid)
		_exit(3);
	mem(0, &args, sizeof(args));
	pidfd = CALL(pidfd_open, pid, 0);
	CALL(pidfd_send_signal, pidfd, 0, 0, 0);
	f = CALL(pidfd_getfd, pidfd, 77777, 0);
	CALL(waitid, P_PID, pid, P(&si), WEXITED | WNOWAIT, P(&ru));
	mem(2, &si, 128), mem(4, &ru, sizeof(ru));
	CALL(wait4, pid, P(&status), 0, P(&ru));
	mem(1, &status, 4), mem(3, &ru, sizeof(ru));
	CALL(wait4, -1, P(&status), WNOHANG, P(&ru)); /* ECHILD */
	CALL(close, pidfd);
#ifdef SYS_fork
	pid = CALL(fork);
	if (!pid)
		pause();
	CALL(wait4, pid, P(&status), WNOHANG, P(&ru)); /* 0: nothing was written */
	CALL(kill, pid, SIGKILL);
	CALL(wait4, pid, P(&status), 0, 0);
	mem(1, &status, 4);
#endif
	pid = CALL(clone, SIGCHLD);
	if (!pid)
		_exit(0);
	CALL(waitid, P_PID, pid, P(&si), WEXITED, 0);
	mem(2, &si, 128);
	CALL(execve, P("/nothing"), P(((char *[]){"a", "b c", 0})), 0);
	path(0, "/nothing"), mem(1, "a\0b c", 5);
	CALL(execveat, AT_FDCWD, P("/nothing"), P(((char *[]){"x", 0})), 0, 0);
	path(1, "/nothing"), mem(2, "x", 1);
	CALL(kcmp, self, self, 0, 0, 1);
	CALL(ptrace, PTRACE_PEEKDATA, 1 << 30, 0, 0);
	CALL(getpriority, 0, 0);
	CALL(setpriority, 0, 0, 0);
	CALL(ioprio_get, 1, 0);
	CALL(ioprio_set, 1, 0, 0x4004);
}

static void thread(void)
{
	uint64_t fs, head, size;
	char name[16] = "", set[] = "called";
	int signal_ = 0;
	unsigned char cpus[1024];
	unsigned cpu, node;
	struct sched_param sp = {0};
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} sa = {.size = 48};
	struct timespec ts;
	long n;

	CALL(prctl, PR_SET_NAME, P(set));
	text(1, set);
	CALL(prctl, PR_GET_NAME, P(name));
	mem(1, name, 16);
	CALL(prctl, PR_GET_PDEATHSIG, P(&signal_));
	mem(1, &signal_, 4);
	CALL(prctl, PR_GET_DUMPABLE, 12345);
#ifdef SYS_arch_prctl
	CALL(arch_prctl, 0x1003 /* ARCH_GET_FS */, P(&fs));
	mem(1, &fs, 8);
	CALL(iopl, 99);
	CALL(ioperm, 1 << 20, 1, 0);
	n = CALL(modify_ldt, 0, P(b), 64);
	if (n > 0)
		mem(1, b, n);
	CALL(set_thread_area, P(b)); /* for 32 bits */
	mem(0, b, 16);
	CALL(get_thread_area, P(b));
	mem(0, b, 16);
#endif
	CALL(get_robust_list, 0, P(&head), P(&size));
	mem(1, &head, 8), mem(2, &size, 8);
	CALL(set_robust_list, head, size);
	CALL(set_tid_address, 0);
	CALL(rseq, 0, 0, 0, 0);
	n = CALL(sched_getaffinity, 0, sizeof(cpus), P(cpus));
	mem(2, cpus, n);
	CALL(sched_setaffinity, 0, n, P(cpus));
	mem(2, cpus, n);
	CALL(sched_getscheduler, 0);
	CALL(sched_setscheduler, 0, 0, P(&sp));
	mem(2, &sp, 4);
	CALL(sched_getparam, 0, P(&sp));
	mem(1, &sp, 4);
	CALL(sched_setparam, 0, P(&sp));
	mem(1, &sp, 4);
	CALL(sched_getattr, 0, P(&sa), 48, 0);
	mem(1, &sa, 48);
	CALL(sched_setattr, 0, P(&sa), 0);
	mem(1, &sa, 48);
	CALL(sched_get_priority_max, 1);
	CALL(sched_get_priority_min, 1);
	CALL(sched_rr_get_interval, 0, P(&ts));
	mem(1, &ts, 16);
	CALL(getcpu, P(&cpu), P(&node), 0);
	mem(0, &cpu, 4), mem(1, &node, 4);
	CALL(membarrier, 0, 0, 0);
	CALL(restart_syscall);
	CALL(rseq_slice_yield);
}

static void machine(void)
{
	struct rlimit r, old;
	struct rusage ru;
	struct utsname u;
	struct sysinfo si;
	long n;

	CALL(prlimit64, 0, RLIMIT_NOFILE, 0, P(&old));
	mem(3, &old, 16);
	r = old;
	CALL(prlimit64, 0, RLIMIT_NOFILE, P(&r), P(&old));
	mem(2, &r, 16), mem(3, &old, 16);
#ifdef SYS_getrlimit
	CALL(getrlimit, RLIMIT_CORE, P(&r));
	mem(1, &r, 16);
	CALL(setrlimit, RLIMIT_CORE, P(&r));
	mem(1, &r, 16);
#endif
	n = CALL(getrandom, P(b), 24, 0);
	mem(0, b, n);
	CALL(uname, P(&u));
	mem(0, &u, 390);
	CALL(sysinfo, P(&si));
	mem(0, &si, sizeof(si));
	CALL(getrusage, RUSAGE_SELF, P(&ru));
	mem(1, &ru, sizeof(ru));
}

static void memory(void)
{
	unsigned char vec[4];
	uint64_t nodes[2] = {1, 0};
	int mode;
	char *p = (char *)CALL(mmap, 0, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long n;

	CALL(mprotect, P(p), 4096, PROT_READ);
	CALL(pkey_mprotect, P(p), 4096, PROT_READ | PROT_WRITE, -1);
	n = CALL(pkey_alloc, 0, 0);
	CALL(pkey_free, n);
	CALL(madvise, P(p), 4096, 4);
	p[0] = p[4096] = 1;
	CALL(mincore, P(p), 16384, P(vec));
	mem(2, vec, 4);
	CALL(mlock, P(p), 4096);
	CALL(mlock2, P(p), 4096, 1);
	CALL(munlock, P(p), 8192);
	CALL(mlockall, 0);
	CALL(munlockall);
	CALL(msync, P(p), 4096, 4);
	if (CALL(mbind, P(p), 4096, 2, P(nodes), 64, 0) < 0)
		;
	mem(3, nodes, 8);
	CALL(set_mempolicy, 0, 0, 0);
	if (CALL(get_mempolicy, P(&mode), P(nodes), 64, 0, 0) >= 0)
		mem(0, &mode, 4), mem(1, nodes, 8);
	CALL(set_mempolicy_home_node, P(p), 4096, 0, 0);
	nodes[0] = 1;
	CALL(migrate_pages, 0, 64, P(nodes), P(nodes));
	mem(2, nodes, 8), mem(3, nodes, 8);
	void *pages[2] = {p, p + 4096};
	int status[2];
	n = CALL(move_pages, 0, 2, P(pages), 0, P(status), 0);
	mem(2, pages, 16);
	if (n >= 0)
		mem(4, status, 8);
	CALL(munmap, P(p), 16384);
	p = (char *)CALL(mmap, 0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	p = (char *)CALL(mremap, P(p), 8192, 20480, 1, 0);
	CALL(mseal, P(p), 4096, 1);
	CALL(remap_file_pages, P(p), 4096, 0, 0, 0);
	CALL(map_shadow_stack, 0, 0, 0);
	CALL(munmap, P(p), 20480);
	CALL(brk, 0);
	n = CALL(memfd_secret, 0);
	if (n >= 0)
		CALL(close, n);

	char from[] = "remote memory", to[32];
	struct iovec l = {to, 13}, r = {from, 13};
	n = CALL(process_vm_readv, self, P(&l), 1, P(&r), 1, 0);
	if (n >= 0)
		mem(1, to, n);
	mem(3, &r, 16);
	n = CALL(process_vm_writev, self, P(&l), 1, P(&r), 1, 0);
	if (n >= 0)
		mem(1, to, n);
	mem(3, &r, 16);
	CALL(process_madvise, -1, P(&r), 1, 20, 0);
	mem(1, &r, 16);
	CALL(process_mrelease, -1, 0);
}

static void limits(void)
{
	uint64_t handled = 1, rule[2] = {1, 0};
	uint32_t action = 0x7fff0000, len;
	unsigned char sizes[6];
	struct sock_filter f = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
	struct sock_fprog prog = {1, &f};
	long r;

	CALL(seccomp, 2, 0, P(&action));
	mem(2, &action, 4);
	CALL(seccomp, 3, 0, P(sizes));
	mem(2, sizes, 6);
	r = CALL(landlock_create_ruleset, P(&handled), 8, 0);
	mem(0, &handled, 8);
	rule[1] = 0x7fffffff; /* no such descriptor */
	CALL(landlock_add_rule, r, 1, P(rule), 0);
	mem(2, rule, 12);
	CALL(landlock_restrict_self, -1, 0);
	len = sizeof(b);
	uint32_t before = len;
	r = CALL(lsm_list_modules, P(b), P(&len), 0);
	if (r >= 0)
		mem(0, b, len), mem(1, &len, 4), mem(1 | BEFORE, &before, 4);
	else
		mem(1, &len, 4);
	before = len = 8;
	r = CALL(lsm_get_self_attr, 100, P(b), P(&len), 0);
	mem(2, &len, 4);
	if (r >= 0)
		mem(1, b, len), mem(2 | BEFORE, &before, 4);
	CALL(lsm_set_self_attr, 100, P(b), 8, 0);
	mem(1, b, 8);
	CALL(add_key, P("user"), P("iotape-test"), P("secret"), 6, -2);
	text(0, "user"), text(1, "iotape-test"), mem(2, "secret", 6);
	CALL(request_key, P("user"), P("iotape-none"), 0, 0);
	text(0, "user"), text(1, "iotape-none");
	CALL(keyctl, 5, -2); /* clear the process's keyring */
	CALL(bpf, 9999, P(b), 16);
	mem(1, b, 16);
	r = CALL(prctl, PR_SET_NO_NEW_PRIVS, 1);
	r = CALL(seccomp, 1, 0, P(&prog));
	mem(2, &prog, 16), mem(2 | TARGET, &f, 8);
}

int main(void)
{
	self = getpid(), uid = getuid(), gid = getgid();
	start();
	identity();
	children();
	thread();
	machine();
	memory();
	limits();
	return finish();
}

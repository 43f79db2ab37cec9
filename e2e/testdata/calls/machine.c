/* Calls that change the machine or what is mounted where: made so that they fail, or
 * change nothing. Some need a mount namespace of their own: run it under unshare -m. */
#include "expect.h"
#include <linux/mount.h>
#include <sys/mount.h>

static unsigned char b[65536];

static void mounts(void)
{
	struct {
		uint32_t size, spare;
		uint64_t id, param;
	} req = {.size = 24, .id = 0xffffffffffffffff, .param = 0};
	uint64_t ids[100], attr[4] = {0};
	long r, f;

	mkdir("at", 0700);
	say("call mkdir * 0 * 1c0 * * * *\npath 0 6174\n");
	f = CALL(fsopen, P("tmpfs"), 1);
	text(0, "tmpfs");
	CALL(fsconfig, f, 1, P("size"), P("1m"), 0);
	text(2, "size"), text(3, "1m");
	CALL(fsconfig, f, 0, P("ro"), 0, 0);
	text(2, "ro");
	CALL(fsconfig, f, 2, P("blob"), P("\1\2\3"), 3); /* EINVAL */
	text(2, "blob"), mem(3, "\1\2\3", 3);
	CALL(fsconfig, f, 6, 0, 0, 0);
	r = CALL(fsmount, f, 1, 0);
	CALL(move_mount, r, P(""), AT_FDCWD, P("at"), 4);
	path(1, ""), path(3, "at");
	CALL(mount_setattr, AT_FDCWD, P("at"), 0, P(attr), 32);
	path(1, "at"), mem(3, attr, 32);
	r = CALL(open_tree, AT_FDCWD, P("at"), 0);
	path(1, "at");
	CALL(open_tree_attr, AT_FDCWD, P("at"), 1, P(attr), 32);
	path(1, "at"), mem(3, attr, 32);
	CALL(fspick, AT_FDCWD, P("at"), 0);
	path(1, "at");
	r = CALL(listmount, P(&req), P(ids), 100, 0);
	mem(0, &req, 24);
	if (r > 0) {
		mem(1, ids, r * 8);
		req.id = ids[0], req.param = 1;
		memset(b, 0, sizeof(b));
		r = CALL(statmount, P(&req), P(b), sizeof(b), 0);
		mem(0, &req, 24);
		if (r >= 0)
			mem(1, b, *(uint32_t *)b);
	}
	CALL(umount2, P("at"), 2);
	path(0, "at");
	CALL(mount, P("none"), P("at"), P("tmpfs"), 1, P("size=1m"));
	text(0, "none"), path(1, "at"), text(2, "tmpfs"), text(4, "size=1m");
	CALL(umount2, P("at"), 0);
	path(0, "at");
	CALL(pivot_root, P("nothing"), P("."));
	path(0, "nothing"), path(1, ".");
	uint64_t ns[4] = {32, 0, 0, 0};
	CALL(listns, P(ns), P(ids), 10, 0); /* ENOSYS before Linux 6.19 */
	mem(0, ns, 32);
}

static void refused(void)
{
	struct utsname_ {
		char s[390];
	} u;
	struct timespec ts = {0};
	long n;

	CALL(uname, P(&u));
	mem(0, &u, 390);
	n = strlen(u.s + 65);
	CALL(sethostname, P(u.s + 65), n);
	mem(0, u.s + 65, n);
	n = strlen(u.s + 65 * 5);
	CALL(setdomainname, P(u.s + 65 * 5), n);
	mem(0, u.s + 65 * 5, n);
	CALL(reboot, 0, 0, 0, 0);
	CALL(swapon, P("nothing"), 0);
	path(0, "nothing");
	CALL(swapoff, P("nothing"));
	path(0, "nothing");
	CALL(acct, P("nothing/at/all"));
	path(0, "nothing/at/all");
	CALL(quotactl, 0x80000700, P("nothing"), 0, P(b)); /* Q_GETQUOTA */
	path(1, "nothing");
	CALL(quotactl_fd, -1, 0x80000700, 0, P(b));
	CALL(init_module, P("not a module"), 12, P("p=1"));
	mem(0, "not a module", 12), text(2, "p=1");
	CALL(finit_module, -1, P(""), 0);
	text(1, "");
	CALL(delete_module, P("iotape_none"), O_NONBLOCK);
	text(0, "iotape_none");
	CALL(kexec_load, 0, 1000, 0, 0);
	CALL(kexec_file_load, -1, -1, 4, P("cmd"), 0);
	mem(3, "cmd", 4);
	n = CALL(syslog, 3, P(b), 100);
	if (n > 0)
		mem(1, b, n);
	CALL(syslog, 10, 0, 0);
#ifdef SYS_uselib
	CALL(uselib, P("nothing"));
	path(0, "nothing");
	CALL(epoll_ctl_old, 1, 2, 3, 4, 5, 6);
	CALL(epoll_wait_old, 1, 2, 3, 4, 5, 6);
	CALL(_sysctl, 0);
	CALL(afs_syscall, 1);
	CALL(create_module, 1);
	CALL(get_kernel_syms, 1);
	CALL(query_module, 1);
	CALL(getpmsg, 1);
	CALL(putpmsg, 1);
	CALL(security, 1);
	CALL(tuxcall, 1);
	CALL(vserver, 1);
#endif
	CALL(nfsservctl, 1);
	CALL(io_setup, 0, 0);
	CALL(io_destroy, 0);
	CALL(io_getevents, 0, 0, 1, P(b), P(&ts));
	mem(4, &ts, 16);
	CALL(io_pgetevents, 0, 0, 1, P(b), P(&ts), 0);
	mem(4, &ts, 16);
}

int main(void)
{
	start();
	mounts();
	refused();
	return finish();
}

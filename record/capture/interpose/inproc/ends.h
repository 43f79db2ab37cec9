// SPDX-License-Identifier: Apache-2.0
/* The ends of sockets, as ../../running/socket.go finds them, but asked for by the process itself. */
#pragma once

enum {
	SOL_SOCKET = 1, SO_TYPE = 3, SO_PEERCRED = 17, SO_ACCEPTCONN = 30, SO_PROTOCOL = 38, SO_DOMAIN = 39,
	AF_UNIX = 1, AF_NETLINK = 16, SOCK_DGRAM = 2, SOCK_RAW = 3, SOCK_NONBLOCK = 04000, SOCK_CLOEXEC = 02000000,
	NETLINK_SOCK_DIAG = 4, SOCK_DIAG_BY_FAMILY = 20, NLM_F_REQUEST = 1, UDIAG_SHOW_PEER = 4, UNIX_DIAG_PEER = 2,
};

/* option returns an option of a socket, a number; 0 if it has none. */
static u16 option(s32 fd, u32 name)
{
	u32 v = 0, n = sizeof(v);
	return own_call5(NR_GETSOCKOPT, fd, SOL_SOCKET, name, (s64)&v, (s64)&n) < 0 ? 0 : (u16)v;
}

/* address appends what getsockname or getpeername says, and returns how many bytes that are. */
static u8 address(struct ends *e, s32 fd, s64 call)
{
	u32 n = SOCKADDR_MAX;
	if (own_call(call, fd, (s64)(e->addresses + e->local), (s64)&n, 0) < 0 || n > SOCKADDR_MAX)
		return 0;
	return (u8)n;
}

/* The question to the kernel about a local socket (linux/unix_diag.h). */
struct question {
	u32 len;
	u16 type, flags;
	u32 seq, pid;
	u8 family, protocol;
	u16 pad;
	u32 states, ino, show, cookie[2];
};
struct answer {
	u32 len;
	u16 type, flags;
	u32 seq, pid;
	u8 family, kind, state, pad;
	u32 ino, cookie[2];
	struct {
		u16 len, type;
		u32 ino;
	} peer;
	u8 rest[256];
};

/* unix_peer finds the inode of the peer of a local socket. It needs a descriptor for that time, so it is for
 * threads that share theirs with nobody. Returns 0 if the kernel cannot be asked. */
static s32 unix_peer(struct ends *e, u64 ino)
{
	struct answer a;
	struct question q;
	for (u32 i = 0; i < sizeof(q); i++) /* not memset: there is none */
		((volatile u8 *)&q)[i] = 0;
	s64 fd = own_call(NR_SOCKET, AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG, 0);
	if (fd < 0)
		return 0;
	q.len = sizeof(q);
	q.type = SOCK_DIAG_BY_FAMILY;
	q.flags = NLM_F_REQUEST;
	q.family = AF_UNIX;
	q.ino = (u32)ino;
	q.show = UDIAG_SHOW_PEER;
	q.cookie[0] = q.cookie[1] = ~0u;
	s64 n = own_call(NR_WRITE, fd, (s64)&q, sizeof(q), 0);
	if (n == sizeof(q))
		n = own_call(NR_READ, fd, (s64)&a, sizeof(a), 0);
	own_call(NR_CLOSE, fd, 0, 0, 0);
	if (n < 0)
		return 0;
	if (n >= (s64)(sizeof(a) - sizeof(a.rest)) && a.type == SOCK_DIAG_BY_FAMILY && a.peer.type == UNIX_DIAG_PEER &&
	    a.peer.len >= sizeof(a.peer))
		e->peer_ino = a.peer.ino;
	return 1;
}

/* ends_of fills the ends of a socket. Returns 0 if the tracer has to. */
static s32 ends_of(struct slot *s, struct ends *e, const struct object *o)
{
	s32 fd = (s32)o->fd;
	e->family = option(fd, SO_DOMAIN);
	e->type = option(fd, SO_TYPE);
	e->protocol = option(fd, SO_PROTOCOL);
	e->local = e->peer = 0;
	e->peer_ino = e->zero = 0;
	e->pid = e->uid = 0;
	e->local = address(e, fd, NR_GETSOCKNAME);
	e->peer = address(e, fd, NR_GETPEERNAME);
	if (e->family != AF_UNIX)
		return 1;
	u32 peer[3] = {0, 0, 0}, n = sizeof(peer); /* struct ucred */
	if (s->foreign)
		return 0;
	if (own_call5(NR_GETSOCKOPT, fd, SOL_SOCKET, SO_PEERCRED, (s64)peer, (s64)&n) >= 0 && (s32)peer[0] > 0 &&
	    !option(fd, SO_ACCEPTCONN)) { /* where one listens, they are its own */
		e->pid = peer[0];
		e->uid = peer[1];
	}
	if (!e->peer)
		return 1;
	return !s->files->shared && unix_peer(e, o->ino);
}

/* datagrams reports whether a socket is for datagrams. */
static s32 datagrams(struct slot *s, const struct object *o)
{
	struct descriptor *d = o->fd < DESCRIPTORS ? &s->files->d[o->fd] : 0;
	u64 type = d ? *(volatile u64 *)&d->type : 0;
	if (!type) {
		type = option((s32)o->fd, SO_TYPE);
		if (d)
			*(volatile u64 *)&d->type = type;
	}
	return type == SOCK_DGRAM;
}

/* tell_ends adds the ends of the call's sockets. Returns 0 if the tracer has to. */
static s32 tell_ends(struct record *r)
{
	if (!(r->sp->flags & (SPEC_ENDS | SPEC_SENDS)))
		return 1;
	for (u32 i = 0; i < r->nobjects; i++) {
		const struct object *o = &r->objects[i];
		if ((o->mode & S_IFMT) != S_IFSOCK || (!(r->sp->flags & SPEC_ENDS) && !datagrams(r->s, o)))
			continue;
		struct ends *e = &r->ends[i];
		if (!ends_of(r->s, e, o))
			return 0;
		add(r, IOT_PART_SOCKET, 0, (u64)e, sizeof(*e) - sizeof(e->addresses) + e->local + e->peer, i);
	}
	return 1;
}

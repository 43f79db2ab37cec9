// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The ends of sockets: addresses of both sides, and who the peer of a local one is. */
#pragma once

#include "compose.h"

#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define AF_NETLINK 16
#define AF_VSOCK 40
#define SOCK_DGRAM 2
#define TCP_CLOSE 7
#define TCP_LISTEN 10
#define SOCKADDR_MAX 128 /* sizeof(struct sockaddr_storage) */

/* What a piece of IOT_PART_SOCKET begins with (package event/socket). */
struct ends {
	u16 family, type, protocol;
	u8 local, peer; /* bytes of their addresses, which follow */
	u64 peer_ino;
	u32 pid, uid;
	u64 zero;
};
_Static_assert(sizeof(struct ends) == 32, "ends");

/* number_of makes a number of an address: the verifier lets functions that it verifies once for
 * all callers, because they are not static, have no other pointers to the kernel. */
static __always_inline u64 number_of(struct work *w, void *p)
{
	*(volatile u64 *)&w->from = (u64)p;
	return *(volatile u64 *)&w->from;
}

/* put_inet writes a struct sockaddr_in or sockaddr_in6 and returns its size. */
__noinline u32 put_inet(struct work *w, u64 at, u64 address, u32 port)
{
	if (!w)
		return 0;
	struct sock *sk = (struct sock *)address;
	bool peer = port >> 16;

	if (at > COMPOSE_MAX + 512)
		return 0;
	u8 *b = w->buf + bounded(at);
	*(u64 *)b = MEMBER(sk, __sk_common.skc_family) | (u64)(u16)port << 16;
	*(u64 *)(b + 8) = 0;
	if (MEMBER(sk, __sk_common.skc_family) == AF_INET) {
		*(u32 *)(b + 4) = peer ? MEMBER(sk, __sk_common.skc_daddr) : MEMBER(sk, __sk_common.skc_rcv_saddr);
		return 16;
	}
	if (!bpf_core_field_exists(struct sock_common, skc_v6_daddr))
		return 0;
	*(u64 *)(b + 24) = 0;
	if (peer)
		bpf_probe_read_kernel(b + 8, 16, &sk->__sk_common.skc_v6_daddr);
	else
		bpf_probe_read_kernel(b + 8, 16, &sk->__sk_common.skc_v6_rcv_saddr);
	return 28;
}

/* put_path writes the address of a local socket and returns its size, 0 if it has none. */
__noinline u32 put_path(struct work *w, u64 at, u64 address)
{
	if (!w)
		return 0;
	struct unix_address *a = MEMBER((struct unix_sock *)address, addr);

	if (!a || at > COMPOSE_MAX + 512)
		return 0;
	u32 n = MEMBER(a, len);
	if (n > SOCKADDR_MAX - 1)
		return 0;
	bpf_probe_read_kernel(w->buf + bounded(at), MASKED(n, SOCKADDR_MAX - 1), &a->name);
	return n;
}

static __always_inline u64 ino_of(struct socket *so)
{
	struct file *f = so ? MEMBER(so, file) : 0;
	struct inode *i = f ? MEMBER(f, f_inode) : 0;

	return i ? MEMBER(i, i_ino) : 0;
}

/* put_local fills in what there is of a local socket. */
__noinline int put_local(struct work *w, u64 off, u64 address)
{
	if (!w)
		return 0;
	struct sock *sk = (struct sock *)address;
	u64 at = off + sizeof(struct ends);

	if (off > COMPOSE_MAX + 64 || !bpf_core_type_exists(struct unix_sock))
		return 0;
	struct ends *e = (struct ends *)(w->buf + bounded(off));
	struct sock *peer = MEMBER((struct unix_sock *)address, peer);
	struct pid *p = MEMBER(sk, sk_peer_pid);
	const struct cred *cred = MEMBER(sk, sk_peer_cred);
	u32 n = put_path(w, at, address);

	e->local = n;
	if (peer) {
		e->peer_ino = ino_of(MEMBER(peer, sk_socket));
		e->peer = put_path(w, at + (n & (SOCKADDR_MAX - 1)), number_of(w, peer));
	}
	if (p && cred && MEMBER(sk, __sk_common.skc_state) != TCP_LISTEN) {
		e->pid = number_in(p);
		e->uid = MEMBER((struct cred *)cred, euid.val);
	}
	return 0;
}

/* put_vm writes the struct sockaddr_vm of a socket of virtual machines. */
__noinline int put_vm(struct work *w, u64 off, u64 address)
{
	if (!w)
		return 0;
	if (off > COMPOSE_MAX + 64 || !bpf_core_type_exists(struct vsock_sock))
		return 0;
	struct ends *e = (struct ends *)(w->buf + bounded(off));
	struct vsock_sock *v = (struct vsock_sock *)address;
	bpf_probe_read_kernel(e + 1, 16, &v->local_addr);
	bpf_probe_read_kernel((u8 *)(e + 1) + 16, 16, &v->remote_addr);
	e->local = e->peer = 16;
	return 0;
}

/* put_netlink writes the struct sockaddr_nl of a netlink socket. */
__noinline int put_netlink(struct work *w, u64 off, u64 address)
{
	if (!w)
		return 0;
	if (off > COMPOSE_MAX + 64 || !bpf_core_type_exists(struct netlink_sock))
		return 0;
	struct ends *e = (struct ends *)(w->buf + bounded(off));
	u64 *b = (u64 *)(e + 1);
	b[0] = AF_NETLINK | (u64)MEMBER((struct netlink_sock *)address, portid) << 32;
	b[1] = 0;
	e->local = 12;
	return 0;
}

/* put_socket appends the ends of a socket, which is object number index. */
__noinline int put_socket(struct work *w, u64 address, u32 index)
{
	if (!w)
		return 0;
	u64 of = number_of(w, MEMBER((struct socket *)address, sk));
	struct sock *sk = (struct sock *)of;
	u64 head = w->len, off = head + sizeof(struct piece);

	if (!sk || head > COMPOSE_MAX || (w->ends == ENDS_DATAGRAMS && MEMBER(sk, sk_type) != SOCK_DGRAM))
		return 0;
	struct ends *e = (struct ends *)(w->buf + bounded(off));
	__builtin_memset(e, 0, sizeof(*e));
	e->family = MEMBER(sk, __sk_common.skc_family);
	e->type = MEMBER(sk, sk_type);
	e->protocol = MEMBER(sk, sk_protocol);
	if (e->family == AF_INET || e->family == AF_INET6) {
		u64 at = off + sizeof(*e);
		u32 n = put_inet(w, at, of, __builtin_bswap16(MEMBER(sk, __sk_common.skc_num)));
		e->local = n;
		if (MEMBER(sk, __sk_common.skc_dport) && (MEMBER(sk, sk_type) != 1 || MEMBER(sk, __sk_common.skc_state) != TCP_CLOSE))
			e->peer = put_inet(w, at + (n & 31), of, MEMBER(sk, __sk_common.skc_dport) | 1 << 16);
	} else if (e->family == AF_UNIX) {
		put_local(w, off, of);
	} else if (e->family == AF_NETLINK) {
		put_netlink(w, off, of);
	} else if (e->family == AF_VSOCK) {
		put_vm(w, off, of);
	}
	u32 n = sizeof(*e) + e->local + e->peer;
	*(u64 *)(w->buf + bounded(off + n)) = 0; /* what the piece is padded with */
	put_piece(w, IOT_PART_SOCKET, 0, n, index);
	w->len += pad8(n);
	return 0;
}

/* put_ends appends the ends of those of the call's objects that are sockets. */
__noinline int put_ends(struct work *w)
{
	u32 i;

	if (!w)
		return 0;
	for (i = 0; i < IOT_MAX_SOCKETS; i++) {
		if (i >= w->nsockets)
			break;
		put_socket(w, w->sockets[i].socket, w->sockets[i].object);
	}
	w->nsockets = 0;
	return 0;
}

// SPDX-License-Identifier: Apache-2.0

// Package socket has the ends of sockets in their two forms: what a recorder writes into a
// stream (Encode, Decode; docs/format.md, 1.2), and the name of an open socket in a tape
// (Name, Parse), which is that of strace -yy:
//
//	TCP:[10.0.0.1:4242->10.0.0.2:80]
//	TCPv6:[[::1]:5000]
//	UNIX-STREAM:[812->813,"/run/x.sock",pid=77,uid=0]
//	NETLINK:[ROUTE:4711]
//	VSOCK-STREAM:[2:1024->3:5000]
//
// The name is the only place where a tape has them, whoever wrote it.
//
// The API of this package is not stable; docs/library.md lists the packages whose API is.
package socket

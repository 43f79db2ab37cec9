// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The kernel types that the programs use, and of each only the members that they
 * read. Offsets are relocated at load against the running kernel's BTF, so this
 * file says names and types, not layouts. */
#pragma once

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s8 s8;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
enum { false = 0, true = 1 };

/* include/uapi/linux/bpf.h */
enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
};
enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_F_NO_PREALLOC = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
};
enum pid_type { PIDTYPE_PID, PIDTYPE_TGID, PIDTYPE_PGID, PIDTYPE_SID };
struct bpf_dynptr {
	__u64 __opaque[2];
} __attribute__((aligned(8)));
struct bpf_iter_num {
	__u64 __opaque[1];
} __attribute__((aligned(8)));
struct bpf_iter_task {
	__u64 __opaque[3];
} __attribute__((aligned(8)));
enum { BPF_TASK_ITER_PROC_THREADS = 2 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

#if defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	u64 regs[31];
};
struct pt_regs {
	union {
		struct user_pt_regs user_regs;
		struct {
			u64 regs[31];
		};
	};
	u64 orig_x0;
	int syscallno;
};
#else
struct pt_regs {
	unsigned long bp, bx, r10, r9, r8, cx, dx, si, di, orig_ax;
};
#endif

struct thread_info {
	unsigned long flags;
	u32 status;
};

typedef struct {
	u32 val;
} kuid_t;
typedef struct {
	u32 val;
} kgid_t;

struct list_head {
	struct list_head *next;
};

typedef struct {
	int counter;
} atomic_t;

struct super_block {
	u32 s_dev;
	unsigned long s_magic;
};
struct inode;
struct address_space {
	struct inode *host;
	atomic_t i_mmap_writable;
};
struct inode {
	u16 i_mode;
	struct address_space *i_mapping;
	long long i_ctime_sec;
	atomic_t i_writecount;
	kuid_t i_uid;
	kgid_t i_gid;
	struct super_block *i_sb;
	unsigned long i_ino;
	union {
		const unsigned int i_nlink;
		unsigned int __i_nlink;
	};
	u32 i_rdev;
	long long i_size;
};
struct timespec64 {
	long long tv_sec;
};
struct inode___6_6 { /* Linux 6.6 to 6.10 */
	struct timespec64 __i_ctime;
};
struct inode___old { /* before Linux 6.6 */
	struct timespec64 i_ctime;
};
struct mutex {
	long long owner;
};
struct qstr {
	u64 hash_len;
	const unsigned char *name;
};
struct dentry {
	struct qstr d_name;
	struct inode *d_inode;
};
struct path {
	struct dentry *dentry;
};
struct file {
	void *private_data;
	struct inode *f_inode;
	unsigned int f_mode;
	unsigned int f_flags;
	struct mutex f_pos_lock;
	long long f_pos;
	struct path f_path;
};
struct backing_file {
	struct path user_path;
};
struct page {
	unsigned long compound_head;
};
struct folio {
	struct address_space *mapping;
	unsigned long index;
	unsigned long _flags_1;
};
struct folio___old { /* before Linux 6.6 */
	unsigned char _folio_order;
};
struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
	const unsigned long vm_flags;
	void *anon_vma;
	unsigned long vm_pgoff;
	struct file *vm_file;
};
struct fdtable {
	unsigned int max_fds;
	struct file **fd;
	unsigned long *close_on_exec;
};
struct files_struct {
	struct fdtable *fdt;
};
struct fs_struct {
	int users;
};
struct mm_struct {
	unsigned long arg_start;
	unsigned long arg_end;
	unsigned long env_start;
	unsigned long env_end;
	struct file *exe_file;
};
struct ns_common {
	unsigned int inum;
};
struct cgroup_namespace {
	struct ns_common ns;
};
struct ipc_namespace {
	struct ns_common ns;
};
struct mnt_namespace {
	struct ns_common ns;
};
struct net {
	struct ns_common ns;
};
struct pid_namespace {
	struct ns_common ns;
};
struct user_namespace {
	struct ns_common ns;
};
struct uts_namespace {
	struct ns_common ns;
};
struct nsproxy {
	struct uts_namespace *uts_ns;
	struct ipc_namespace *ipc_ns;
	struct mnt_namespace *mnt_ns;
	struct net *net_ns;
	struct cgroup_namespace *cgroup_ns;
};
typedef struct {
	u64 val;
} kernel_cap_t;
struct group_info {
	int ngroups;
	kgid_t gid[];
};
struct cred {
	kuid_t uid;
	kgid_t gid;
	kuid_t suid;
	kgid_t sgid;
	kuid_t euid;
	kgid_t egid;
	kuid_t fsuid;
	kgid_t fsgid;
	kernel_cap_t cap_effective;
	struct user_namespace *user_ns;
	struct group_info *group_info;
};
struct upid {
	int nr;
	struct pid_namespace *ns;
};
struct pid {
	unsigned int level;
	struct upid numbers[1];
};
struct sock;
struct socket {
	struct file *file;
	struct sock *sk;
};
struct in6_addr {
	u8 in6_u[16];
};
struct sock_common {
	__be32 skc_daddr;
	__be32 skc_rcv_saddr;
	__be16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	volatile unsigned char skc_state;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
};
struct sock {
	struct sock_common __sk_common;
	u16 sk_type;
	u16 sk_protocol;
	struct socket *sk_socket;
	struct pid *sk_peer_pid;
	const struct cred *sk_peer_cred;
};
struct sockaddr_un {
	u16 sun_family;
};
struct unix_address {
	int len;
	struct sockaddr_un name[];
};
struct unix_sock {
	struct unix_address *addr;
	struct sock *peer;
};
struct netlink_sock {
	u32 portid;
};
struct sockaddr_vm {
	u16 svm_family;
};
struct vsock_sock {
	struct sockaddr_vm local_addr;
	struct sockaddr_vm remote_addr;
};
struct kernfs_node {
	u64 id;
	const char *name;
	struct kernfs_node *__parent; /* Linux 6.15; before it was called parent */
};
struct kernfs_node___before_6_15 {
	struct kernfs_node *parent;
};
struct cgroup {
	struct kernfs_node *kn;
	int level;
	struct cgroup *ancestors[1];
};
struct css_set {
	struct cgroup *dfl_cgrp;
};
struct signal_struct {
	atomic_t live;
	int group_exit_code;
	unsigned int flags;
	struct pid *pids[4];
};
struct sched_entity {
	u64 sum_exec_runtime;
};
struct sched_info { /* empty without CONFIG_SCHED_INFO */
	u64 run_delay;
};
typedef struct {
	unsigned long sig[1];
} sigset_t;
struct sigaction {
	void *sa_handler;
	unsigned long sa_flags;
};
struct k_sigaction {
	struct sigaction sa;
};
struct kernel_siginfo {
	int si_signo;
};
struct sighand_struct {
	struct k_sigaction action[64];
};
struct task_struct {
	struct thread_info thread_info;
	struct sched_entity se;
	struct sched_info sched_info;
	unsigned int flags;
	unsigned int ptrace;
	struct mm_struct *mm;
	int exit_state;
	int exit_code;
	int pid;
	int tgid;
	struct task_struct *real_parent;
	struct task_struct *parent; /* or its tracer */
	struct task_struct *group_leader;
	const struct cred *cred;
	char comm[16];
	struct fs_struct *fs;
	struct files_struct *files;
	struct signal_struct *signal;
	struct sighand_struct *sighand;
	sigset_t blocked;
	struct pid *thread_pid;
	struct css_set *cgroups;
	struct nsproxy *nsproxy;
	u64 start_boottime;
};
struct block_device {
	u32 bd_dev;
};
struct bvec_iter {
	unsigned int bi_idx;
};
struct bio_vec {
	struct page *bv_page;
	unsigned int bv_len;
	unsigned int bv_offset;
};
struct bio {
	struct block_device *bi_bdev;
	struct bvec_iter bi_iter;
	struct bio_vec *bi_io_vec;
};
struct gendisk {
	struct block_device *part0;
};
struct request_queue {
	struct gendisk *disk;
};
struct request___blk {
	struct request_queue *q;
	u32 cmd_flags;
	unsigned int __data_len;
	u64 __sector;
	struct bio *bio;
	u64 start_time_ns;
};
/* io_uring/ (Linux 6.16) */
struct io_uring_cqe {
	u64 user_data;
	s32 res;
	u32 flags;
};
struct io_uring_sqe {
	u8 opcode;
};
struct io_cqe {
	u64 user_data;
	s32 res;
};
struct io_rsrc_node {
	unsigned long file_ptr;
};
struct io_rsrc_data {
	unsigned int nr;
	struct io_rsrc_node **nodes;
};
struct io_file_table {
	struct io_rsrc_data data;
};
struct io_ring_ctx {
	unsigned int flags;
	u32 *sq_array;
	struct io_uring_sqe *sq_sqes;
	unsigned int cached_sq_head;
	unsigned int sq_entries;
	struct io_file_table file_table;
};
struct io_fixed_file {
	unsigned long file_ptr;
};
struct io_file_table___slots { /* before Linux 6.13 */
	struct io_fixed_file *files;
};
struct io_ring_ctx___slots {
	unsigned int nr_user_files;
	struct io_file_table___slots file_table;
};
struct io_kiocb {
	struct file *file;
	u8 opcode;
	struct io_cqe cqe;
	struct io_ring_ctx *ctx;
	void *async_data;
};
struct io_rw { /* what a struct io_kiocb begins with, of reads and writes */
	u64 addr;
};
enum iter_type { ITER_UBUF };
struct iov_iter {
	u8 iter_type;
	void *ubuf;
};
struct msghdr {
	struct iov_iter msg_iter;
};
struct io_async_msghdr { /* what io_kiocb.async_data is, of what is sent and received */
	struct msghdr msg;
};
enum pageflags {
	PG_head = 6,
};
struct bpf_iter__task {
	struct task_struct *task;
};
struct linux_binprm {
	const char *filename;
	const char *interp;
};

#pragma clang attribute pop

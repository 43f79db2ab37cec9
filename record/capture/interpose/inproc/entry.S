// SPDX-License-Identifier: Apache-2.0
/* The way of a patched call: site -> island -> stub (rcx := the stub) -> the slot's entry, which is
 * common -> gate -> after() -> site + 2.
 *
 * The system call is made with the program's own registers and stack, and with no frame of
 * ours below it. rcx and r11 are free: the kernel overwrites them. Calls that are made
 * between gates_begin and gates_end pass Syscall User Dispatch; others stop the thread for the tracer.
 *
 * A stub begins with the program's system call and a jump to site + 2. Where our code cannot
 * make a call, the program makes it there: without a slot, or when a handler of the program runs
 * within our code, which happens only without a tracer. So the slot's entry is raw while our code runs.
 */
#define S_NR 0
#define S_A0 8
#define S_A1 16
#define S_A2 24
#define S_A3 32
#define S_A4 40
#define S_A5 48
#define S_RET 56
#define S_FLAGS 64
#define S_RSP 72
#define S_ENTER 80
#define S_EXIT 88
#define S_RESULT 96
#define S_STATE 104
#define S_PENDING 112
#define S_REASON 120
#define S_SELF 128
#define S_CONTROL 136
#define S_ENTRY 240
#define S_STUB 248
#define S_OPEN 344

#define C_CLASS (320 + 64 * 32) /* offset of control.class */
#define STACK_TOP 16384
#define STUB_RET 40 /* where a stub has the address of site + 2 */

	.text
	.globl gates_begin, gates_end, common, common_saved, gate, gate_end, pass_gate, pass_end, raw
	.globl flags_saved, check_done, check_end, pending_checked, pass_done, pass, check, checking, call, traced_way, own_call, own_call5
	.globl own_end, trap, trap_end, again, committed, restore, restore_end
	.globl orphan, restorer, restorer_end, arming, unarmed, settle

	/* FLAGS gives back the flags that common has saved. It uses rax. */
	.macro FLAGS
	mov %gs:S_FLAGS, %rax
	add $127, %al
	sahf
	.endm

	/* ARGUMENTS gives back the registers that our code has used for its own. */
	.macro ARGUMENTS
	mov %gs:S_A0, %rdi
	mov %gs:S_A1, %rsi
	mov %gs:S_A3, %r10
	mov %gs:S_A4, %r8
	mov %gs:S_A5, %r9
	.endm

	/* OUTSIDE says that our code is left. Behind it the slot is not read. */
	.macro OUTSIDE
	mov %gs:S_OPEN, %r11
	mov %r11, %gs:S_ENTRY
	.endm

	/* LEAVE goes on behind the program's call, with its result. */
	.macro LEAVE
	FLAGS
	mov %gs:S_RESULT, %rax
	mov %gs:S_RET, %rcx
	OUTSIDE
	jmp *%rcx
	.endm

gates_begin:
	.p2align 6
common:
	lea raw(%rip), %r11
	mov %r11, %gs:S_ENTRY
	mov %rax, %gs:S_NR
	mov %rdx, %gs:S_A2
	mov %rcx, %gs:S_STUB
	mov STUB_RET(%rcx), %rcx
	mov %rcx, %gs:S_RET
common_saved:
	lahf
	seto %al
	mov %rax, %gs:S_FLAGS
flags_saved:
	mov %gs:S_NR, %rax
	mov %gs:S_CONTROL, %r11
	cmp $512, %rax
	jae traced_way
	movzbl C_CLASS(%r11,%rax), %edx
	test %edx, %edx
	jz pass
	mov %rdi, %gs:S_A0
	mov %rsi, %gs:S_A1
	mov %r10, %gs:S_A3
	mov %r8, %gs:S_A4
	mov %r9, %gs:S_A5
	cmp $3, %edx
	jae check
call:
	movl $2, %gs:S_STATE
	rdtsc
	shl $32, %rdx
	or %rdx, %rax
	mov %rax, %gs:S_ENTER
	mov %gs:S_A2, %rdx
	mov %gs:S_NR, %rax
gate:
	syscall
gate_end:
	mov %rax, %gs:S_RESULT
	movl $3, %gs:S_STATE
	rdtsc
	shl $32, %rdx
	or %rdx, %rax
	mov %rax, %gs:S_EXIT
	mov %rsp, %gs:S_RSP
again:
	mov %gs:S_SELF, %rdi
	lea STACK_TOP(%rdi), %rsp
	cld
	call after
	mov %gs:S_RSP, %rsp
	test %eax, %eax
	jnz trap_with_reason
committed:
	movl $0, %gs:S_STATE
	mov $3, %eax /* REASON_SIGNAL */
	cmpl $0, %gs:S_PENDING
pending_checked:
	jne trap_with_reason
restore:
	ARGUMENTS
	mov %gs:S_A2, %rdx
	LEAVE
restore_end:

pass:
	mov %gs:S_A2, %rdx
pass_gate:
	syscall
pass_end:
	mov %rax, %gs:S_RESULT
	LEAVE
pass_done:

check:
	cmp $4, %edx
	je traced_way
checking:
	movl $1, %gs:S_STATE
	mov %rsp, %gs:S_RSP
	mov %gs:S_SELF, %rdi
	lea STACK_TOP(%rdi), %rsp
	cld
	call before
	mov %gs:S_RSP, %rsp
	mov %eax, %edx
	mov $4, %eax /* REASON_AGAIN */
	cmpl $0, %gs:S_PENDING
check_done:
	jne trap_with_reason
	movl $0, %gs:S_STATE
	ARGUMENTS
	mov %gs:S_NR, %rax
	test %edx, %edx
	jz pass
	cmp $4, %edx
	jne call

	/* The program makes its call itself, in the stub, where the tracer sees it. Our code stays
	 * closed until the tracer opens it: without one, what the call makes has the same slot. */
traced_way:
	FLAGS
	mov %gs:S_A2, %rdx
	mov %gs:S_NR, %rax
	mov %gs:S_STUB, %rcx
raw:
	jmp *%rcx

check_end:
	/* own_call(nr, a, b, c, d), own_call5(nr, a, b, c, d, e): a call of ours, which is not recorded */
own_call:
own_call5:
	mov %rdi, %rax
	mov %rsi, %rdi
	mov %rdx, %rsi
	mov %rcx, %rdx
	mov %r8, %r10
	mov %r9, %r8
	syscall
own_end:
	ret

	/* where the handler of SIGSYS returns to */
restorer:
	mov $15, %eax /* rt_sigreturn */
	syscall
restorer_end:
	int3

	/* arming: the thread sets its Syscall User Dispatch, by the call that its registers are for, and goes on
	 * with those of its slot. The tracer sends it here. */
arming:
	syscall
	test %eax, %eax
	jz committed
	int3 /* refused: the tracer knows what to do */
unarmed:
	nop

	/* START begins a new program at rcx, with the registers that it has without us. */
	.macro START
	xor %eax, %eax
	xor %ebx, %ebx
	xor %edx, %edx
	xor %ebp, %ebp
	xor %edi, %edi
	xor %esi, %esi
	xor %r8d, %r8d
	xor %r9d, %r9d
	xor %r10d, %r10d
	xor %r11d, %r11d
	xor %r12d, %r12d
	xor %r13d, %r13d
	xor %r14d, %r14d
	xor %r15d, %r15d
	jmp *%rcx
	.endm

	/* settle: the loader's end, in our own code. r8: its descriptor; r15: the program's first instruction. */
settle:
	lea orphan(%rip), %rax
	mov %rax, -64(%rsp)
	movq $0x4c000004, -56(%rsp) /* SA_SIGINFO | SA_RESTORER | SA_ONSTACK | SA_NODEFER */
	lea restorer(%rip), %rax
	mov %rax, -48(%rsp)
	movq $~0x40000000, -40(%rsp) /* all signals but SIGSYS */
	mov $31, %edi /* SIGSYS */
	lea -64(%rsp), %rsi
	xor %edx, %edx
	mov $8, %r10d
	mov $13, %eax /* rt_sigaction */
	syscall
	mov %r8, %rdi
	mov $3, %eax /* close */
	syscall
	mov %r15, %rcx
	START
gates_end:
	.p2align 4

trap_with_reason:
	mov %eax, %gs:S_REASON
	mov $-1, %rax /* no call, should there be no tracer */
trap:
	syscall
trap_end: /* without a tracer */
	mov %gs:S_SELF, %rdi
	lea STACK_TOP(%rdi), %rsp
	cld
	call alone
	mov %gs:S_RSP, %rsp
	cmpl $4, %gs:S_REASON /* REASON_AGAIN */
	jne committed
	ARGUMENTS
	jmp traced_way

	/* orphan: the handler of SIGSYS. It runs only without a tracer. orphaned() returns the
	 * program's own handler if the signal is for that. */
orphan:
	push %rdi
	push %rsi
	push %rdx
	mov %gs:S_SELF, %rcx
	lea 24(%rsp), %r8
	call orphaned
	pop %rdx
	pop %rsi
	pop %rdi
	test %rax, %rax
	jz 1f
	jmp *%rax /* which returns to its own restorer (orphaned) */
1:	ret
orphan_end:

	/* copy_from(to, from, n) returns how many bytes could not be copied. The tracer moves a
	 * thread that faults between user_begin and user_end to user_fault. */
	.globl copy_from, string_length, user_begin, user_end, user_fault
user_begin:
copy_from:
	mov %rdx, %rcx
	rep movsb
	mov %rcx, %rax
	ret
	/* string_length(s, most) returns the length of a string, most if it is longer, -1 if
	 * it cannot be read. */
string_length:
	xor %eax, %eax
1:	cmp %rsi, %rax
	jae 2f
	cmpb $0, (%rdi,%rax)
	je 2f
	inc %rax
	jmp 1b
2:	ret
user_end:
user_fault:
	mov $-1, %rax
	ret

	/* loader: run once, before the first instruction of a new program, in memory that is never
	 * executed otherwise. r12 is what to map: bytes; r13: of code; r14: of control, behind
	 * the code; rbx: where; rbp: where more stubs are to be, 0 for nowhere; r15: the program's first instruction.
	 * Syscall User Dispatch lets its calls through, but for announce, where the tracer does
	 * the rest and sends it to settling. Without a tracer it takes all back. */
	.globl loader, loader_unarmed, settling, loader_gates_end, announce_end, loader_end
loader:
	syscall /* which lets the calls of the loader through alone, by the registers that it begins with */
	test %eax, %eax
	jz 1f
	int3 /* refused: the tracer knows what to do */
loader_unarmed:
1:
	/* the action of SIGSYS as it is, at rsp - 32 */
	mov $31, %edi
	xor %esi, %esi
	lea -32(%rsp), %rdx
	mov $8, %r10d
	mov $13, %eax /* rt_sigaction */
	syscall
	lea loader_name(%rip), %rdi
	mov $1, %esi /* MFD_CLOEXEC */
	mov $319, %eax /* memfd_create */
	syscall
	mov %rax, %r8
	test %rax, %rax
	js announce
	mov %rbx, %rdi
	mov %r12, %rsi
	mov $3, %edx /* PROT_READ | PROT_WRITE */
	mov $1, %r10d /* MAP_SHARED */
	xor %r9d, %r9d
	mov $9, %eax /* mmap */
	syscall
	cmp $-4096, %rax
	ja announce
	mov %r8, (-160)(%rsp) /* what needs r8 */
	mov %rax, %rbx
	mov %rbx, %rdi
	mov %r13, %rsi
	mov $5, %edx /* PROT_READ | PROT_EXEC */
	mov $0x32, %r10d /* MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED */
	mov $-1, %r8
	mov $9, %eax
	syscall
	cmp $-4096, %rax
	ja 1f
	lea (%rbx,%r13), %rdi
	mov %r14, %rsi
	mov $1, %edx
	mov $10, %eax /* mprotect */
	syscall
	cmp $-4096, %rax
	ja 1f
	mov %rbx, %rdi
	mov %r12, %rsi
	mov $16, %edx /* MADV_DONTDUMP */
	mov $28, %eax
	syscall
	mov %rbp, %rdi
	test %rdi, %rdi
	jz 2f
	mov $0x10000, %esi
	mov $5, %edx
	mov $0x100022, %r10d /* MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE */
	mov $9, %eax
	syscall
	mov %rax, %rbp
2:	/* without a tracer the announcement does nothing */
	lea back(%rip), %rax
	mov %rax, -64(%rsp)
	movq $0x44000004, -56(%rsp) /* SA_SIGINFO | SA_RESTORER | SA_NODEFER */
	lea back_restorer(%rip), %rax
	mov %rax, -48(%rsp)
	movq $0, -40(%rsp)
	mov $31, %edi
	lea -64(%rsp), %rsi
	xor %edx, %edx
	mov $8, %r10d
	mov $13, %eax
	syscall
	sub $160, %rsp /* the frame of a signal begins below */
	mov (%rsp), %r8
	mov %rbx, %rax
	jmp 3f
1:	mov -160(%rsp), %r8
announce:
	sub $160, %rsp
3:	mov %rax, %rdi /* the address, or an error */
	mov $-1, %rax
	jmp announce_call
announced:
	add $160, %rsp
	test %r8, %r8
	js 1f
	mov %r8, %rdi
	mov $3, %eax /* close */
	syscall
1:	mov $31, %edi
	lea -32(%rsp), %rsi
	xor %edx, %edx
	mov $8, %r10d
	mov $13, %eax
	syscall
	mov $59, %edi /* PR_SET_SYSCALL_USER_DISPATCH */
	xor %esi, %esi
	xor %edx, %edx
	xor %r10d, %r10d
	xor %r8d, %r8d
	mov $157, %eax /* prctl */
	syscall
	mov %r15, %rcx
	START
	/* settling: the gates are those of our own code from here on, by the call that the registers are
	 * for. r14 is the descriptor, rbx leads to settle. */
settling:
	syscall
	mov %r14, %r8
	jmp *%rbx
back_restorer:
	mov $15, %eax
	syscall
back: /* the kernel compares the address behind a call */
	ret
loader_gates_end:
announce_call:
	syscall
announce_end:
	jmp announced
loader_name:
	.asciz "iotape"
loader_end:

	/* remote: a call that the tracer wants made, in a program that runs already, in memory that is never executed
	 * otherwise. The tracer stops the thread at the call's end. Only without a tracer does it go on from
	 * there: it makes its registers and its mask what they were. Nothing else was changed. */
	.globl remote, remote_data, remote_name, remote_end, orphan_end
	.p2align 4
remote:
	syscall
	mov $14, %eax /* rt_sigprocmask */
	mov $2, %edi /* SIG_SETMASK */
	lea remote_mask(%rip), %rsi
	xor %edx, %edx
	mov $8, %r10d
	syscall
	mov remote_flags(%rip), %rax
	add $127, %al
	sahf
	mov remote_rdi(%rip), %rdi
	mov remote_rsi(%rip), %rsi
	mov remote_rdx(%rip), %rdx
	mov remote_r10(%rip), %r10
	mov remote_r8(%rip), %r8
	mov remote_r9(%rip), %r9
	mov remote_rcx(%rip), %rcx
	mov remote_r11(%rip), %r11
	mov remote_rax(%rip), %rax
	jmp *remote_rip(%rip)
	.p2align 3
remote_data: /* in the order of remote_amd64.go */
remote_rdi:	.quad 0
remote_rsi:	.quad 0
remote_rdx:	.quad 0
remote_r10:	.quad 0
remote_r8:	.quad 0
remote_r9:	.quad 0
remote_rcx:	.quad 0
remote_r11:	.quad 0
remote_rax:	.quad 0
remote_rip:	.quad 0
remote_flags:	.quad 0 /* as FLAGS wants them */
remote_mask:	.quad 0
remote_name:	.asciz "iotape"
	.p2align 3
remote_end:

	.section .note.GNU-stack,"",@progbits

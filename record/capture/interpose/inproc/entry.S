// SPDX-License-Identifier: Apache-2.0
/* The way of a patched call: site -> island -> stub (rcx := where the program goes on) ->
 * common -> gate -> after() -> site + 2.
 *
 * The system call is made with the program's own registers and stack, and with no frame of
 * ours below it. rcx and r11 are free: the kernel overwrites them. Calls that are made
 * between gates_begin and gates_end pass Syscall User Dispatch; others stop the thread for the tracer.
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

#define C_CLASS (64 + 64 * 32) /* offset of control.class */
#define STACK_TOP 16384

	.text
	.globl gates_begin, gates_end, common, common_saved, gate, gate_end, pass_gate, pass_end
	.globl remote, remote_end, tool, tool_end, flags_saved, check_done, check_end, pending_checked, pass_done, pass, check, call, traced_way, own_call, own_end, trap, trap_end, traced, traced_end, again, committed, restore, restore_end

gates_begin:
	.p2align 6
common:
	mov %rax, %gs:S_NR
	mov %rdx, %gs:S_A2
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
	mov %gs:S_A0, %rdi
	mov %gs:S_A1, %rsi
	mov %gs:S_A2, %rdx
	mov %gs:S_A3, %r10
	mov %gs:S_A4, %r8
	mov %gs:S_A5, %r9
	mov %gs:S_FLAGS, %rax
	add $127, %al
	sahf
	mov %gs:S_RESULT, %rax
	mov %gs:S_RET, %rcx
	jmp *%rcx
restore_end:

pass:
	mov %gs:S_A2, %rdx
pass_gate:
	syscall
pass_end:
	mov %rax, %gs:S_RESULT
	mov %gs:S_FLAGS, %rax
	add $127, %al
	sahf
	mov %gs:S_RESULT, %rax
	mov %gs:S_RET, %rcx
	jmp *%rcx
pass_done:

check:
	cmp $4, %edx
	je traced_way
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
	mov %gs:S_A0, %rdi
	mov %gs:S_A1, %rsi
	mov %gs:S_A3, %r10
	mov %gs:S_A4, %r8
	mov %gs:S_A5, %r9
	mov %gs:S_NR, %rax
	test %edx, %edx
	jz pass
	cmp $4, %edx
	jne call
	jmp traced_way

check_end:
	/* own_call(nr, a, b, c): a call of ours, which is not recorded */
own_call:
	mov %rdi, %rax
	mov %rsi, %rdi
	mov %rdx, %rsi
	mov %rcx, %rdx
	syscall
own_end:
	ret

	/* The tracer makes a call of the program's here, and at tool one of its own. */
remote:
	syscall
remote_end: /* without a tracer; else that goes on */
	mov %gs:S_RET, %rcx
	jmp *%rcx
tool:
	syscall
tool_end:
	int3
gates_end:
	.p2align 4

trap_with_reason:
	mov %eax, %gs:S_REASON
trap:
	syscall
trap_end: /* without a tracer */
	movl $0, %gs:S_PENDING
	cmpl $4, %gs:S_REASON /* REASON_AGAIN */
	jne committed
	mov %gs:S_A0, %rdi
	mov %gs:S_A1, %rsi
	mov %gs:S_A3, %r10
	mov %gs:S_A4, %r8
	mov %gs:S_A5, %r9
	mov %gs:S_NR, %rax
	jmp pass

traced_way:
	mov %gs:S_FLAGS, %rax
	add $127, %al
	sahf
	mov %gs:S_A2, %rdx
	mov %gs:S_NR, %rax
traced:
	syscall
traced_end: /* without a tracer */
	mov %gs:S_RET, %rcx
	jmp *%rcx

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

	/* loader: run once, at the entry of a new program. r12 is what to map: bytes; r13: of code; r14: of control, behind the code. */
	.globl loader, loader_made, loader_done, loader_end, loader_name
loader:
	lea loader_name(%rip), %rdi
	mov $1, %esi /* MFD_CLOEXEC */
	mov $319, %eax /* memfd_create */
	syscall
	int3
loader_made: /* r15: the descriptor; rbx: where to map */
	mov %rbx, %rdi
	mov %r12, %rsi
	mov $3, %edx /* PROT_READ | PROT_WRITE */
	mov $1, %r10d /* MAP_SHARED */
	mov %r15, %r8
	xor %r9d, %r9d
	mov $9, %eax /* mmap */
	syscall
	cmp $-4096, %rax
	ja 1f
	mov %rax, %rbx
	mov %rbx, %rdi
	mov %r13, %rsi
	mov $5, %edx /* PROT_READ | PROT_EXEC */
	mov $0x32, %r10d /* MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED */
	mov $-1, %r8
	xor %r9d, %r9d
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
	mov %rbx, %rax
1:	mov %rax, %rbp
	mov %r15, %rdi
	mov $3, %eax /* close */
	syscall
	mov %rbp, %rax
	int3
loader_done:
loader_name:
	.asciz "iotape"
loader_end:

	.section .note.GNU-stack,"",@progbits

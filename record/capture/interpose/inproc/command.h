// SPDX-License-Identifier: Apache-2.0
/* The memory of the commands of fcntl and ioctl. */
#pragma once

/* command_at returns where the table has a command, or an entry that is not used. */
INLINE const struct command *command_at(const struct control *c, u32 value, u32 ioctl)
{
	u32 at = (value ^ value >> 8) % COMMANDS;
	while (c->commands[at].memory != COMMAND_UNUSED && (c->commands[at].value != value || c->commands[at].ioctl != ioctl))
		at = (at + 1) % COMMANDS;
	return &c->commands[at];
}

/* command adds the memory of a command. Returns 0 if the tracer has to. */
static s32 command(struct record *r, const struct cap *k, s64 ret)
{
	u32 value = (u32)r->s->args[k->len_arg], ioctl = r->sp->op == IOT_OP_IOCTL;
	const struct command *row = command_at(r->s->control, value, ioctl);
	u32 what = row->memory, bytes = row->bytes;
	if (what == COMMAND_UNUSED) {
		what = COMMAND_NONE;
		if (ioctl) { /* most requests say so (asm-generic/ioctl.h) */
			bytes = value >> 16 & 0x3fff;
			if (bytes && value >> 30)
				what = value >> 30 == 2 ? COMMAND_OUT : COMMAND_IN;
		}
	}
	if (what == COMMAND_TRACE)
		return 0;
	if (r->s->args[k->arg] && (what == COMMAND_IN || (what == COMMAND_OUT && !failed(ret))))
		content(r, k, r->s->args[k->arg], bytes);
	return 1;
}

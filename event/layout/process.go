// SPDX-License-Identifier: Apache-2.0

package layout

import "github.com/iotape/iotape/event"

// Structures of calls on processes, signals and time (sigaction(2), wait(2),
// getrusage(2), clone3(2), sched_setattr(2), capget(2), adjtimex(2) …).

var (
	rlimit = all(named(u64("rlim_cur", 0), infinity), named(u64("rlim_max", 8), infinity))

	itimerspec = all(time("it_interval", 0), time("it_value", 16))
	itimerval  = all(micros("it_interval", 0), micros("it_value", 16))
	timezone   = all(i32("tz_minuteswest", 0), i32("tz_dsttime", 4))

	rusage = of(
		brief(micros("ru_utime", 0)), brief(micros("ru_stime", 16)), i64("ru_maxrss", 32), i64("ru_ixrss", 40), i64("ru_idrss", 48), i64("ru_isrss", 56),
		i64("ru_minflt", 64), i64("ru_majflt", 72), i64("ru_nswap", 80), i64("ru_inblock", 88), i64("ru_oublock", 96), i64("ru_msgsnd", 104),
		i64("ru_msgrcv", 112), i64("ru_nsignals", 120), i64("ru_nvcsw", 128), i64("ru_nivcsw", 136))
	tms = all(i64("tms_utime", 0), i64("tms_stime", 8), i64("tms_cutime", 16), i64("tms_cstime", 24))

	utsname = of(brief(text("sysname", 0, 65)), brief(text("nodename", 65, 65)), text("release", 130, 65), text("version", 195, 65), text("machine", 260, 65), text("domainname", 325, 65))
	sysinfo = all(
		i64("uptime", 0), array("loads", 8, 3, u64("", 0)), u64("totalram", 32), u64("freeram", 40), u64("sharedram", 48), u64("bufferram", 56),
		u64("totalswap", 64), u64("freeswap", 72), u16("procs", 80), u64("totalhigh", 88), u64("freehigh", 96), u32("mem_unit", 104))

	// the kernel's: the flags are a long
	sigaction = all(enum("sa_handler", 0, 8, handlers), num(Signals, 8, "sa_mask", 24), flags("sa_flags", 8, 8, actionFlags), ptr("sa_restorer", 16))
	stack     = all(ptr("ss_sp", 0), flags("ss_flags", 8, 4, stackFlags), u64("ss_size", 16))
	sigevent  = all(nested("sigev_value", 0, 8, sigval), num(Signal, 4, "sigev_signo", 8), enum("sigev_notify", 12, 4, notifications), i32("sigev_notify_thread_id", 16))
	sigval    = all(i32("sival_int", 0), ptr("sival_ptr", 0))

	cloneArgs = of(
		brief(flags("flags", 0, 8, event.CloneNames)), ptr("pidfd", 8), brief(ptr("child_tid", 16)), brief(ptr("parent_tid", 24)), brief(num(Signal, 8, "exit_signal", 32)),
		brief(ptr("stack", 40)), brief(x64("stack_size", 48)), brief(ptr("tls", 56)), ptr("set_tid", 64), u64("set_tid_size", 72), u64("cgroup", 80))

	schedAttr = all(
		u32("size", 0), flags("sched_policy", 4, 4, event.PolicyNames), flags("sched_flags", 8, 8, event.SchedNames), i32("sched_nice", 16), u32("sched_priority", 20),
		u64("sched_runtime", 24), u64("sched_deadline", 32), u64("sched_period", 40))

	timex = all(
		flags("modes", 0, 4, event.AdjustNames), i64("offset", 8), i64("freq", 16), i64("maxerror", 24), i64("esterror", 32), flags("status", 40, 4, clockStates),
		i64("constant", 48), i64("precision", 56), i64("tolerance", 64), micros("time", 72), i64("tick", 88), i64("ppsfreq", 96), i64("jitter", 104), i32("shift", 112),
		i64("stabil", 120), i64("jitcnt", 128), i64("calcnt", 136), i64("errcnt", 144), i64("stbcnt", 152), i32("tai", 160))

	capHeader = all(enum("version", 0, 4, capVersions), i32("pid", 4))

	mqAttr = all(flags("mq_flags", 0, 8, event.DescriptorNames), i64("mq_maxmsg", 8), i64("mq_msgsize", 16), i64("mq_curmsgs", 24))
	sembuf = all(u16("sem_num", 0), i16("sem_op", 2), flags("sem_flg", 4, 2, semFlags))
)

// capabilityData decodes the two halves of struct __user_cap_data_struct[2], as
// versions 2 and 3 have them.
func capabilityData(b []byte) (Value, bool) {
	if len(b) < 12 {
		return Value{}, false
	}
	v := Value{Kind: Struct}
	for i, name := range [...]string{"effective", "permitted", "inheritable"} {
		bits := number(b[4*i:][:4]) | number(within(b, 12+4*i, 4))<<32
		v.values = append(v.values, Value{Name: name, Kind: Flags, Num: bits, Set: capabilityBits, Brief: true})
	}
	return v, true
}

// capabilityBits are the capabilities as bits.
var capabilityBits = func() *event.Set {
	var items []event.Item
	for _, c := range event.CapabilityNames.Items {
		items = append(items, event.Item{Name: "1<<" + c.Name, Value: 1 << c.Value})
	}
	return event.Bits("capabilities", "0", items...)
}()

// siginfo decodes siginfo_t (sigaction(2)): which of its forms it has is in the
// signal and its code.
func siginfo(b []byte) (Value, bool) {
	if len(b) < event.SiginfoBytes {
		return Value{}, false
	}
	signal, code := number(b[:4]), int32(number(b[8:12]))
	codes := signalCodes[signal]
	if codes == nil || code <= 0 || code == siKernel {
		codes = sentCodes
	}
	v := Value{Kind: Struct, values: []Value{{Name: "si_signo", Kind: Signal, Num: signal, Brief: true}}}
	if errno := number(b[4:8]); errno != 0 {
		v.values = append(v.values, Value{Name: "si_errno", Kind: Int, Num: errno, Brief: true})
	}
	v.values = append(v.values, Value{Name: "si_code", Kind: Enum, Num: uint64(uint32(code)), Set: codes, Brief: true})
	if r := siginfoForm(signal, code); r != nil {
		form := Value{Kind: Struct, Data: b[16:], record: r}
		v.values = append(v.values, fieldsOf(&form)...)
	}
	return v, true
}

// encodeSiginfo is the inverse of siginfo.
func encodeSiginfo(t *Told) (b []byte, lost int, ok bool) {
	if t.Kind != ToldFields {
		return nil, 0, false
	}
	b = make([]byte, event.LayoutSiginfo.Bytes(event.AMD64))
	var signal, code uint64
	form := Told{Kind: ToldFields}
	for i := range t.Parts {
		p := &t.Parts[i]
		known := true
		switch p.Name {
		case "si_signo":
			n, isName := event.SignalByName(p.Text)
			if signal = uint64(n); !isName {
				signal, known = event.ParseNumber(p.Text)
			}
		case "si_errno":
			var errno uint64
			if e, isName := event.ErrnoByName(p.Text); isName {
				errno = uint64(e)
			} else {
				errno, known = event.ParseNumber(p.Text)
			}
			store(b[4:8], errno)
		case "si_code":
			code, known = signalCode(signal, p.Text)
		default:
			form.Parts = append(form.Parts, *p)
		}
		if !known {
			lost++
		}
	}
	store(b[:4], signal)
	store(b[8:12], code)
	if r := siginfoForm(signal, int32(code)); r != nil {
		return b, lost + r.encode(b[16:], &form), signal != 0
	}
	return b, lost + len(form.Parts), signal != 0
}

// signalCode returns the value of a si_code's name.
func signalCode(signal uint64, name string) (code uint64, ok bool) {
	if codes := signalCodes[signal]; codes != nil {
		if code, ok = codes.ParseValue(name); ok {
			return code, true
		}
	}
	return sentCodes.ParseValue(name)
}

// Values of si_code for all signals (sigaction(2)).
const (
	siUser   = 0
	siKernel = 0x80
	siQueue  = -1
	siTimer  = -2
	siTkill  = -6
)

// siginfoForm returns what siginfo_t has from offset 16, nil if it has nothing there.
func siginfoForm(signal uint64, code int32) *record {
	const sigill, sigtrap, sigbus, sigfpe, sigsegv, sigchld, sigio, sigsys = 4, 5, 7, 8, 11, 17, 29, 31
	switch {
	case code == siTimer:
		return fromTimer
	case code == siQueue || code < siTkill:
		return queued
	case code == siUser || code == siTkill:
		return sentBy
	}
	switch signal {
	case sigchld:
		switch {
		case code == 1: // CLD_EXITED: a number, not a signal
			return fromExit
		case code > 0 && code != siKernel:
			return fromChild
		}
	case sigsegv, sigbus, sigill, sigfpe, sigtrap:
		return fromFault
	case sigio:
		return fromIO
	case sigsys:
		return fromSeccomp
	}
	if code == siKernel || signal == 0 {
		return nil
	}
	return sentBy
}

// The forms of siginfo_t, from offset 16.
var (
	sentBy      = all(i32("si_pid", 0), id("si_uid", 4))
	queued      = all(i32("si_pid", 0), id("si_uid", 4), i32("si_int", 8), ptr("si_ptr", 8))
	fromTimer   = all(x32("si_timerid", 0), i32("si_overrun", 4), i32("si_int", 8), ptr("si_ptr", 8))
	fromChild   = all(i32("si_pid", 0), id("si_uid", 4), num(Signal, 4, "si_status", 8), i64("si_utime", 16), i64("si_stime", 24))
	fromExit    = all(i32("si_pid", 0), id("si_uid", 4), i32("si_status", 8), i64("si_utime", 16), i64("si_stime", 24))
	fromFault   = all(ptr("si_addr", 0))
	fromIO      = all(i64("si_band", 0), fd("si_fd", 8))
	fromSeccomp = all(ptr("si_call_addr", 0), i32("si_syscall", 8), x32("si_arch", 12))
)

// SPDX-License-Identifier: Apache-2.0

package layout

import "github.com/iotape/iotape/event"

// struct perf_event_attr (linux/perf_event.h), as far as it is recorded.

var perfFields = func() []field {
	list := []field{
		brief(enum("type", 0, 4, perfTypes)), brief(u32("size", 4)), brief(x64("config", 8)), brief(u64("sample_period", 16)),
		brief(flags("sample_type", 24, 8, perfSamples)), brief(flags("read_format", 32, 8, perfFormats)),
	}
	shift := uint8(0)
	for _, name := range [...]string{
		"disabled", "inherit", "pinned", "exclusive", "exclude_user", "exclude_kernel", "exclude_hv", "exclude_idle", "mmap", "comm", "freq", "inherit_stat",
		"enable_on_exec", "task", "watermark", "precise_ip", "mmap_data", "sample_id_all", "exclude_host", "exclude_guest", "exclude_callchain_kernel",
		"exclude_callchain_user", "mmap2", "comm_exec", "use_clockid", "context_switch", "write_backward", "namespaces", "ksymbol", "bpf_event", "aux_output",
		"cgroup", "text_poke", "build_id", "inherit_thread", "remove_on_exec", "sigtrap",
	} {
		width := uint8(1)
		if name == "precise_ip" {
			width = 2
		}
		list = append(list, bit(name, 40, 8, shift, width))
		shift += width
	}
	return append(list, u32("wakeup_events", 48), enum("bp_type", 52, 4, breakpoints), x64("config1", 56))
}()

func perfAttr(b []byte, a event.Arch) (Value, bool) {
	if len(b) < 64 {
		return Value{}, false
	}
	v := Value{Kind: Struct, Data: b, arch: a, record: &record{fields: perfFields}}
	const iType, iConfig = 0, 2
	v.values = fieldsOf(&v)
	if set := perfConfigs[v.values[iType].Num]; set != nil {
		v.values[iConfig].Kind, v.values[iConfig].Set = Enum, set
	}
	return v, true
}

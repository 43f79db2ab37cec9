package capture

import (
	"testing"

	"iotape/event"
)

func TestParseContent(t *testing.T) {
	for text, want := range map[string]string{
		"full":                      "full",
		"none":                      "none",
		"hash":                      "hash",
		"head:1":                    "head:1",
		"head:64K":                  "head:65536",
		"read=hash":                 "read=hash,write=full",
		"write=none":                "read=full,write=none",
		"write=full,read=hash":      "read=hash,write=full",
		"read=hash,write=hash":      "hash",
		"read=head:4,write=head:4":  "head:4",
		"write=head:1M,read=none":   "read=none,write=head:1048576",
		"":                          "",
		"half":                      "",
		"head":                      "",
		"head:":                     "",
		"head:0":                    "",
		"head:-1":                   "",
		"head:4G":                   "",
		"head:4x":                   "",
		"both=full":                 "",
		"read=full,read=none":       "",
		"full,none":                 "",
		"read=full,none":            "",
		"full,":                     "",
		"read=":                     "",
		"head:18446744073709551615": "",
	} {
		c, err := ParseContent(text)
		if (err != nil) != (want == "") || err == nil && c.String() != want {
			t.Errorf("%q: %v, %v, want %q", text, c, err, want)
		}
		if err != nil {
			continue
		}
		if again, err := ParseContent(c.String()); err != nil || again != c {
			t.Errorf("%q: read again as %v, %v", text, again, err)
		}
	}
}

// What is content, and which way it goes.
func TestContentOf(t *testing.T) {
	c := Content{Read: Keep{Rule: KeepHash}, Write: Keep{Rule: KeepNone}}
	for _, k := range []struct {
		op   event.Op
		arg  int
		want Rule
	}{
		{event.OpRead, 1, KeepHash},
		{event.OpPreadv2, 1, KeepHash},
		{event.OpRecvfrom, 1, KeepHash},
		{event.OpWrite, 1, KeepNone},
		{event.OpWritev, 1, KeepNone},
		{event.OpSendto, 1, KeepNone},
		{event.OpCopyFileRange, 0, KeepHash},
		{event.OpSendfile, 1, KeepHash},
		{event.OpSendfile, 2, KeepFull},
		{event.OpSendto, 4, KeepFull}, // an address
		{event.OpConnect, 1, KeepFull},
		{event.OpMsgsnd, 1, KeepNone},
		{event.OpSendmsg, event.PartData.Of(1), KeepNone},
		{event.OpRecvmsg, event.PartData.Of(1), KeepHash},
		{event.OpRecvmsg, event.PartName.Of(1), KeepFull},
		{event.OpRecvmsg, event.PartControl.Of(1), KeepFull},
		{event.OpSendmsg, 1, KeepFull},
		{event.OpBind, 1, KeepFull},
		{event.OpSetsockopt, 3, KeepFull},
		{event.OpPipe2, 0, KeepFull},
		{event.OpReadlink, 1, KeepFull},
		{event.OpGetdents64, 1, KeepFull},
		{event.OpSetxattr, 2, KeepFull},
		{event.OpExecve, 1, KeepFull},
		{event.OpStat, 1, KeepFull},
		{event.OpRead, 17, KeepFull},
	} {
		if got := c.Of(event.Lookup(k.op), k.arg); got.Rule != k.want {
			t.Errorf("%s, argument %d: %v", k.op, k.arg, got)
		}
	}
}

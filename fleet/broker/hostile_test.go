// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/iotape/iotape/fleet/batch"
	"github.com/iotape/iotape/fleet/collector"
	"github.com/iotape/iotape/fleet/key"
	"github.com/iotape/iotape/fleet/staging"
)

// TestHostile: who has the key of one host tries to make up, spoil and remove what is of
// another, with all that a broker lets a sender choose: where its answer goes, and
// headers. Nothing of the other host changes.
func TestHostile(t *testing.T) {
	t.Parallel()
	// Nothing is purged, so that what is removed is seen.
	s := newSite(t, nil, func(o *collector.Options) { o.Commit = time.Hour })
	victim, thief := s.enrol(t, "db7", Agent), s.enrol(t, "thief", Agent)
	said, stop := s.agentOf(t, "db7", quoted("key", victim), 10)
	host := func(name string) (h collector.Host) {
		for _, h := range s.c.Fleet().Hosts {
			if h.Host == name {
				return h
			}
		}
		return h
	}
	wait(t, "storing", said, func() bool { h := host("db7"); return h.Stored > 100 && h.Produced > 0 })
	var errs lines
	nc := s.connect(t, thief, &errs)
	pair, _, err := key.Read(thief)
	if err != nil {
		t.Fatal(err)
	}
	send := func(subject, reply string, data []byte, header ...string) {
		m := nats.NewMsg(subject + "thief")
		m.Reply, m.Data = reply, data
		for i := 0; i < len(header); i += 2 {
			m.Header.Set(header[i], header[i+1])
		}
		signature, err := pair.Sign(batch.Digest(m.Subject, m.Header.Get(batch.FloorHeader), data))
		if err == nil {
			m.Header.Set(batch.SignatureHeader, base64.RawStdEncoding.EncodeToString(signature))
			err = nc.PublishMsg(m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	inside, err := s.b.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	js, err := jetstream.New(inside)
	if err != nil {
		t.Fatal(err)
	}
	stored := func() jetstream.StreamState {
		bucket, err := js.Stream(t.Context(), batch.Bucket)
		if err != nil {
			t.Fatalf("the broker's stream: %v", err)
		}
		return bucket.CachedInfo().State
	}
	// last returns what the agent of the other host sent last.
	last := func() batch.Batch {
		bucket, err := js.Stream(t.Context(), batch.Bucket)
		if err != nil {
			t.Fatal(err)
		}
		for seq := bucket.CachedInfo().State.LastSeq; seq > 0; seq-- {
			m, err := bucket.GetMsg(t.Context(), seq)
			if err != nil {
				t.Fatal(err)
			}
			if p, err := batch.Decode(m.Data); err == nil && m.Subject == batch.Batches+"db7" {
				return p
			}
		}
		t.Fatal("the broker has nothing of db7")
		return batch.Batch{}
	}

	// Answers that are to be words of another host, or orders to the broker.
	hello, err := json.Marshal(&batch.Hello{Version: batch.Version, AgentVersion: "thief",
		ClockNS: time.Now().UnixNano(), BootID: strings.Repeat("0", 36), AgentStartNS: 1})
	if err != nil {
		t.Fatal(err)
	}
	const api = "$JS.API."
	for _, reply := range []string{
		batch.Batches + "db7", batch.Hellos + "db7", batch.Reports + "db7", api + "STREAM.PURGE." + batch.Bucket, api + "STREAM.DELETE." + batch.Bucket,
		api + "STREAM.MSG.DELETE." + batch.Bucket, api + "STREAM.UPDATE." + batch.Bucket, api + "CONSUMER.CREATE." + batch.Bucket + ".x", "$JS.ACK.IOTAPE.x.1.1.1.1.1",
	} {
		for range 50 {
			send(batch.Batches, reply, []byte("not a batch"))
		}
		send(batch.Hellos, reply, hello)
	}
	// Ids that the broker takes for repetitions, and headers that would remove what is there.
	latest := last().Stream
	for n := range uint64(200) {
		id := fmt.Sprintf("db7/%s/%d", latest, n)
		send(batch.Batches, "", []byte("x"), jetstream.MsgIDHeader, id)
	}
	send(batch.Batches, "", []byte("x"), "Nats-Rollup", "all")
	send(batch.Batches, "", []byte("x"), "Nats-Rollup", "sub")
	send(batch.Batches, "", []byte("x"), "Nats-TTL", "1s")
	send(batch.Batches, "", []byte("x"), "Nats-Trace-Dest", batch.Reports+"db7")
	// The stream of the other host, under the own name: it is another one.
	p := batch.Batch{Kind: batch.End, Number: 9999, Before: 1 << 40, Lost: 1 << 40, Stream: latest,
		Data: []byte(`{"version":1,"reason":"agent stop"}`)}
	send(batch.Batches, "", p.Append(nil), batch.FloorHeader, "9998")
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	wait(t, "a forgery that is dropped", &s.said, func() bool { f := s.c.Fleet(); return f.Refusals.Forged >= 150 })
	wait(t, "the last of what the thief sent", &s.said, func() bool { return host("thief").Open == 1 })
	before := host("db7").Stored
	wait(t, "storing", said, func() bool { return host("db7").Stored > before })
	if st := stored(); st.FirstSeq != 1 || st.NumDeleted != 0 || st.Msgs != st.LastSeq {
		t.Errorf("something was removed from the broker's stream: %+v", st)
	}
	stop()
	end := last()
	var says staging.End
	if err := json.Unmarshal(end.Data, &says); err != nil || end.Kind != batch.End || !says.Complete {
		t.Fatalf("the last batch of db7 is %+v, %v", end, err)
	}
	wait(t, "its end", said, func() bool { return host("db7").Stored >= says.Events })
	if h := host("db7"); h.Stored != says.Events || h.Lost != 0 || h.Damaged != 0 || h.Foreign != 0 ||
		h.Reordered != 0 || h.Duplicates != 0 || h.AgentVersion != "test" {
		t.Errorf("the other host, which sent %d events, is %+v", says.Events, h)
	}
}

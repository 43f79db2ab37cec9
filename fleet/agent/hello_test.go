// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/iotape/iotape/fleet/batch"
	"github.com/iotape/iotape/fleet/spool"
)

// A broker can be there before its collector. An agent that is connected and sends says hello again until a collector
// answers; else a collector that was killed would never learn of an agent that began meanwhile.
func TestHelloIsSaidAgain(t *testing.T) {
	broker, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(),
		NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	broker.Start()
	defer broker.Shutdown()
	if !broker.ReadyForConnections(time.Minute) {
		t.Fatal("the broker does not start")
	}
	sp, err := spool.Open(t.TempDir(), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer sp.Close()
	s := &shipper{spool: sp, host: "db7", note: func(string) {}, hello: func() *batch.Hello {
		return &batch.Hello{Version: batch.Version, AgentStartNS: 7}
	}}
	s.welcome = true // an earlier collector answered
	if err := s.connect(&Config{Host: "db7", Collectors: []string{broker.ClientURL()}}); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.run(ctx); close(done) }()

	collector, err := nats.Connect(broker.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer collector.Close()
	for s.nc.Stats().OutMsgs == 0 { // nobody is there to hear the first hello
		time.Sleep(time.Millisecond)
	}
	hellos := make(chan batch.Hello, 100)
	if _, err := collector.Subscribe(batch.Hellos+"*", func(m *nats.Msg) {
		var h batch.Hello
		if err := json.Unmarshal(m.Data, &h); err != nil {
			t.Error(err)
		}
		b, err := json.Marshal(batch.Answer{Version: batch.Version})
		if err == nil {
			err = m.Respond(b)
		}
		if err != nil {
			t.Error(err)
		}
		hellos <- h
	}); err != nil {
		t.Fatal(err)
	}
	select {
	case h := <-hellos:
		if h.AgentStartNS != 7 {
			t.Errorf("the hello says the start %d, want 7", h.AgentStartNS)
		}
	case <-time.After(time.Minute):
		t.Error("the agent does not say hello again")
	}
	end()
	<-done
}

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// publish sends 20 messages to a stream of NATS, and stores each that it gets of it in a file.
func publish(addr, dir string, more []string) error {
	nc, err := nats.Connect("nats://"+addr, nats.Timeout(10*time.Second))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := nc.JetStream(nats.MaxWait(10 * time.Second))
	if err != nil {
		return err
	}
	if _, err := js.AddStream(&nats.StreamConfig{Name: "S", Subjects: []string{"s.>"}}); err != nil {
		return err
	}
	for k := range 20 {
		line := fmt.Sprintf("message %d of the flow test, %s%d; ", k, strings.Join(more, " "), k*k*7919)
		if _, err := js.Publish("s.x", []byte(strings.Repeat(line, 5+k))); err != nil {
			return err
		}
	}
	sub, err := js.SubscribeSync("s.>", nats.DeliverAll())
	if err != nil {
		return err
	}
	for k := range 20 {
		m, err := sub.NextMsg(10 * time.Second)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("got", k)), m.Data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/iotape/iotape/fleet/batch"
)

const (
	consumerWait  = 10 * time.Second // for the broker to make a consumer
	consumerAgain = time.Second      // before another consumer is made
	heartbeat     = 5 * time.Second  // of the broker; two that do not come end a consumer
)

// consume reads the broker's stream from a sequence number on, in order, until ctx is done. When a consumer fails, it
// makes another one, which continues after the last message.
//
// The library's ordered consumer does the same, but asks again and again for the next consumer by one name. A cluster
// may assign that name to a broker that was killed just before: the others do not count it as offline even a minute
// later (observed with nats-server 2.15). It keeps the assignment, and nothing is delivered until that broker is back.
func (c *Collector) consume(ctx context.Context, from uint64, to chan<- *message) {
	for ctx.Err() == nil {
		next, err := c.read(ctx, from, to)
		if ctx.Err() != nil {
			return
		}
		if next == from || !errors.Is(err, jetstream.ErrNoHeartbeat) {
			c.say("reading from the broker: %v", err)
		}
		from = next
		select {
		case <-ctx.Done():
		case <-time.After(consumerAgain):
		}
	}
}

// errGap is why a consumer is given up that did not deliver a message.
var errGap = errors.New("a message was not delivered, and is asked for again")

// read reads by one consumer until it fails, and returns the number of the message that is next.
func (c *Collector) read(ctx context.Context, from uint64, to chan<- *message) (next uint64, err error) {
	making, cancel := context.WithTimeout(ctx, consumerWait)
	defer cancel()
	// It has no name, so that the library makes up one that was never used.
	consumer, err := c.bucket.CreateConsumer(making, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from, AckPolicy: jetstream.AckNonePolicy,
		Replicas: 1, MemoryStorage: true, InactiveThreshold: time.Minute,
	})
	if err != nil {
		return from, err
	}
	messages, err := consumer.Messages(jetstream.PullMaxBytes(16<<20), jetstream.PullHeartbeat(heartbeat))
	if err != nil {
		return from, err
	}
	defer messages.Stop()
	for delivered := uint64(1); ; delivered++ {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return from, err
		}
		meta, err := m.Metadata()
		if err != nil {
			return from, fmt.Errorf("a message without its numbers: %w", err)
		}
		if meta.Sequence.Consumer != delivered {
			return from, errGap
		}
		host := strings.TrimPrefix(m.Subject(), batch.Batches)
		// Verify signatures here, so that commits do not wait for it.
		message := &message{host, m.Headers(), m.Data(), meta.Sequence.Stream,
			c.genuine(host, m.Subject(), m.Headers(), m.Data())}
		select {
		case to <- message:
			from = message.seq + 1
		case <-ctx.Done():
			return from, ctx.Err()
		}
	}
}

package main

import (
	"context"
	"sync"
	"time"

	"clients/driver"

	"github.com/IBM/sarama"
)

// member is a consumer in a group. sarama pushes records from a goroutine a partition; they wait in a channel until Poll takes them.
type member struct {
	name    string
	group   sarama.ConsumerGroup
	cancel  context.CancelFunc
	ended   chan struct{}
	waiting chan pushed
	given   []pushed

	lock    sync.Mutex // guards the next one
	session sarama.ConsumerGroupSession
}

type pushed struct {
	session sarama.ConsumerGroupSession
	message *sarama.ConsumerMessage
}

// Setup runs when a generation begins.
func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.session = session
	return nil
}

// Cleanup runs when it is over.
func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.session = nil
	return nil
}

// ConsumeClaim runs for each partition of a generation.
func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			select {
			case m.waiting <- pushed{session, message}:
			case <-session.Context().Done():
				return nil
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func (m *member) current() sarama.ConsumerGroupSession {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.session
}

func (c client) Join(group, topic, instance, _ string) error {
	config := c.config()
	config.Consumer.Return.Errors = false
	config.Consumer.Group.Session.Timeout = 6 * time.Second
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	config.Consumer.Group.InstanceId = instance
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	consumer, err := sarama.NewConsumerGroup(c.boot, group, config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	*c.member = member{name: group, group: consumer, cancel: cancel, ended: make(chan struct{}), waiting: make(chan pushed)}
	go func() {
		defer close(c.member.ended)
		for ctx.Err() == nil {
			if err := consumer.Consume(ctx, []string{topic}, c.member); err != nil {
				time.Sleep(100 * time.Millisecond)
			}
		}
	}()
	return nil
}

func (c client) Poll(most int, wait time.Duration) ([]int32, []driver.Record, error) {
	var found []driver.Record
	deadline := time.After(wait)
	for over := false; len(found) < most && !over; {
		select {
		case one := <-c.member.waiting:
			found = append(found, recordOf(one.message))
			c.member.given = append(c.member.given, one)
		case <-deadline:
			over = true
		}
	}
	var assigned []int32
	if session := c.member.current(); session != nil {
		for _, partitions := range session.Claims() {
			assigned = append(assigned, partitions...)
		}
	}
	return assigned, found, nil
}

func (c client) Commit() error {
	given, session := c.member.given, c.member.current()
	c.member.given = nil
	for _, one := range given {
		if one.session != session {
			return driver.Failure{Word: "REBALANCED", Text: "the generation is over"}
		}
		session.MarkMessage(one.message, "")
	}
	if len(given) == 0 {
		return nil
	}
	session.Commit()
	return c.isCommitted(given)
}

// isCommitted asks the server: sarama's Commit tells nobody when it failed.
func (c client) isCommitted(given []pushed) error {
	ends := map[int32]int64{}
	var partitions []int32
	for _, one := range given {
		if _, there := ends[one.message.Partition]; !there {
			partitions = append(partitions, one.message.Partition)
		}
		ends[one.message.Partition] = one.message.Offset + 1
	}
	topic := given[0].message.Topic
	return c.admin(func(admin sarama.ClusterAdmin) error {
		found, err := admin.ListConsumerGroupOffsets(c.member.name, map[string][]int32{topic: partitions})
		if err != nil {
			return err
		}
		for partition, end := range ends {
			if block := found.GetBlock(topic, partition); block == nil || block.Offset < end {
				return driver.Failure{Word: "UNCOMMITTED", Text: "the server has an older offset"}
			}
		}
		return nil
	})
}

func (c client) Leave() error {
	c.member.cancel()
	<-c.member.ended
	return c.member.group.Close()
}

package main

import (
	"context"
	"errors"
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

	lock       sync.Mutex // guards the others
	session    sarama.ConsumerGroupSession
	claims     map[claim]bool // those that run
	rebalances int
	fenced     error // another one has its instance id
}

type claim struct {
	session   sarama.ConsumerGroupSession
	partition int32
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
	m.rebalances++
	return nil
}

// Cleanup runs when it is over.
func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.session = nil
	return nil
}

func (m *member) runs(one claim, now bool) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if now {
		m.claims[one] = true
	} else {
		delete(m.claims, one)
	}
}

// ConsumeClaim runs for each partition: of a generation, or as long as a cooperative member has it.
func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, records sarama.ConsumerGroupClaim) error {
	ours := claim{session, records.Partition()}
	m.runs(ours, true)
	defer m.runs(ours, false)
	for {
		select {
		case message, ok := <-records.Messages():
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

func (c client) Rebalances() int {
	c.member.lock.Lock()
	defer c.member.lock.Unlock()
	return c.member.rebalances
}

func (c client) Join(group, topic, instance, assignor string) error {
	config := c.config()
	config.Consumer.Return.Errors = false
	config.Consumer.Group.Session.Timeout = driver.Session(instance)
	config.Consumer.Group.Heartbeat.Interval = 500 * time.Millisecond
	config.Consumer.Group.InstanceId = instance
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	if assignor == "cooperative" {
		config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyCooperativeSticky()}
	}
	consumer, err := sarama.NewConsumerGroup(c.boot, group, config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	*c.member = member{name: group, group: consumer, cancel: cancel, ended: make(chan struct{}), waiting: make(chan pushed), claims: map[claim]bool{}}
	go func() {
		defer close(c.member.ended)
		for ctx.Err() == nil {
			err := consumer.Consume(ctx, []string{topic}, c.member)
			if errors.Is(err, sarama.ErrFencedInstancedId) {
				c.member.isFenced(err)
				return
			}
			if err != nil {
				time.Sleep(100 * time.Millisecond)
			}
		}
	}()
	return nil
}

func (m *member) isFenced(err error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.fenced = err
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
	m := c.member
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.fenced != nil && len(found) == 0 {
		return nil, nil, m.fenced
	}
	var assigned []int32
	for one := range m.claims {
		if one.session == m.session {
			assigned = append(assigned, one.partition)
		}
	}
	return assigned, found, nil
}

// takeGiven is what is to be committed of partitions that the member still has.
func (m *member) takeGiven() (ours []pushed) {
	m.lock.Lock()
	defer m.lock.Unlock()
	for _, one := range m.given {
		if one.session == m.session && m.claims[claim{one.session, one.message.Partition}] {
			ours = append(ours, one)
		}
	}
	m.given = nil
	return ours
}

func (c client) Commit() ([]driver.Position, error) {
	given := c.member.takeGiven()
	if len(given) == 0 {
		return nil, nil
	}
	session := given[0].session
	for _, one := range given {
		session.MarkMessage(one.message, "")
	}
	session.Commit()
	return c.committed(given)
}

// committed asks the server: sarama's Commit tells nobody when it failed.
func (c client) committed(given []pushed) (positions []driver.Position, err error) {
	ends := map[int32]int64{}
	var partitions []int32
	for _, one := range given {
		if _, there := ends[one.message.Partition]; !there {
			partitions = append(partitions, one.message.Partition)
		}
		ends[one.message.Partition] = one.message.Offset + 1
	}
	topic := given[0].message.Topic
	err = c.admin(func(admin sarama.ClusterAdmin) error {
		found, err := admin.ListConsumerGroupOffsets(c.member.name, map[string][]int32{topic: partitions})
		if err != nil {
			return err
		}
		for partition, end := range ends {
			if block := found.GetBlock(topic, partition); block == nil || block.Offset < end {
				return driver.Failure{Word: "UNCOMMITTED", Text: "the server has an older offset"}
			}
			positions = append(positions, driver.Position{Partition: partition, Offset: end})
		}
		return nil
	})
	return positions, err
}

func (c client) Leave() error {
	c.member.cancel()
	<-c.member.ended
	return c.member.group.Close()
}

// franz-go behind the driver protocol: go-franz BOOTSTRAP
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

	"clients/driver"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type client struct {
	admin  *kadm.Client
	member *kgo.Client // in a group
	late   error       // waits for the next Poll, because the last one had records as well

	lock       sync.Mutex // guards the others: franz-go tells of assignments in a goroutine of its own
	given      map[string]map[int32]kgo.EpochOffset
	assigned   map[int32]bool
	rebalances int
}

func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// TLS, where the environment names files for it: KAFKA_TLS_CA, and for a certificate of its own KAFKA_TLS_CERT and KAFKA_TLS_KEY.
func secured() []kgo.Opt {
	roots, err := os.ReadFile(os.Getenv("KAFKA_TLS_CA"))
	if err != nil {
		return nil
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(roots)
	if own, err := tls.LoadX509KeyPair(os.Getenv("KAFKA_TLS_CERT"), os.Getenv("KAFKA_TLS_KEY")); err == nil {
		config.Certificates = []tls.Certificate{own}
	}
	return []kgo.Opt{kgo.DialTLSConfig(config)}
}

func open(options ...kgo.Opt) (*kgo.Client, error) {
	options = append(options, secured()...)
	// By default it waits 5 s before it asks again for the metadata of a topic that was made a moment ago.
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(os.Args[1]), kgo.MetadataMinAge(50 * time.Millisecond)}, options...)...)
}

func main() {
	kafka, err := open()
	if err != nil {
		panic(err)
	}
	driver.Serve(&client{admin: kadm.NewClient(kafka)})
}

func (c *client) Abilities() string {
	return "codec:none codec:gzip codec:snappy codec:lz4 codec:zstd idempotent acks0 time headers empty-header null-header repeat-header null-key empty-key " +
		"tombstone empty-value consume create delete grow topics cluster offset offset-time offset-max group cooperative static consumer-protocol"
}

func (c *client) Code(err error) string {
	var known *kerr.Error
	if errors.As(err, &known) {
		return strconv.Itoa(int(known.Code))
	}
	return "FAILED"
}

func (c *client) Create(topic string, partitions, factor int) error {
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	_, err := c.admin.CreateTopic(ctx, int32(partitions), int16(factor), nil, topic)
	return err
}

func (c *client) Delete(topic string) error {
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	_, err := c.admin.DeleteTopic(ctx, topic)
	return err
}

func (c *client) Grow(topic string, partitions int) error {
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	answers, err := c.admin.UpdatePartitions(ctx, partitions, topic)
	if err != nil {
		return err
	}
	return answers.Error()
}

func (c *client) Topics() (map[string]int, error) {
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	details, err := c.admin.ListTopics(ctx)
	topics := map[string]int{}
	for name, topic := range details {
		topics[name] = len(topic.Partitions)
	}
	return topics, err
}

func (c *client) Cluster() (int, bool, error) {
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	metadata, err := c.admin.BrokerMetadata(ctx)
	controller := false
	for _, node := range metadata.Brokers {
		controller = controller || node.NodeID == metadata.Controller
	}
	return len(metadata.Brokers), controller, err
}

func (c *client) Offset(topic string, partition int32, where string) (int64, error) {
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	var listed kadm.ListedOffsets
	var err error
	switch where {
	case "earliest":
		listed, err = c.admin.ListStartOffsets(ctx, topic)
	case "latest":
		listed, err = c.admin.ListEndOffsets(ctx, topic)
	case "max":
		listed, err = c.admin.ListMaxTimestampOffsets(ctx, topic)
	default:
		ms, _ := strconv.ParseInt(where, 10, 64)
		listed, err = c.admin.ListOffsetsAfterMilli(ctx, ms, topic)
	}
	if err != nil {
		return 0, err
	}
	offset, _ := listed.Lookup(topic, partition)
	return offset.Offset, offset.Err
}

func (c *client) Produce(topic string, records []driver.Record, codec string, acks int, idempotent bool) ([]driver.Position, error) {
	codecs := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
	levels := map[int]kgo.Acks{-1: kgo.AllISRAcks(), 0: kgo.NoAck(), 1: kgo.LeaderAck()}
	options := []kgo.Opt{kgo.ProducerBatchCompression(codecs[codec]), kgo.RequiredAcks(levels[acks]), kgo.ProducerLinger(5 * time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(-1)}
	if !idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	kafka, err := open(options...)
	if err != nil {
		return nil, err
	}
	defer kafka.Close()
	sent := make([]*kgo.Record, len(records))
	for i, record := range records {
		sent[i] = &kgo.Record{Topic: topic, Partition: record.Partition, Key: record.Key, Value: record.Value}
		if record.Timestamp >= 0 {
			sent[i].Timestamp = time.UnixMilli(record.Timestamp)
		}
		for _, header := range record.Headers {
			sent[i].Headers = append(sent[i].Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
		}
	}
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	if err := kafka.ProduceSync(ctx, sent...).FirstErr(); err != nil {
		return nil, err
	}
	positions := make([]driver.Position, len(sent))
	for i, record := range sent {
		positions[i] = driver.Position{Partition: record.Partition, Offset: record.Offset}
		if acks == 0 {
			positions[i].Offset = -1
		}
	}
	return positions, nil
}

func (c *client) Consume(topic string, partition int32, offset int64, count int) ([]driver.Record, error) {
	places := map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().At(offset)}}
	kafka, err := open(kgo.ConsumePartitions(places), kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.FetchMaxWait(200*time.Millisecond))
	if err != nil {
		return nil, err
	}
	defer kafka.Close()
	ctx, cancel := within(15 * time.Second)
	defer cancel()
	var found []driver.Record
	for len(found) < count {
		fetches := kafka.PollRecords(ctx, count-len(found))
		if ctx.Err() != nil {
			break
		}
		for _, failed := range fetches.Errors() {
			return nil, failed.Err
		}
		for _, r := range fetches.Records() {
			found = append(found, recordOf(r))
		}
	}
	return found, nil
}

func recordOf(r *kgo.Record) driver.Record {
	record := driver.Record{Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value}
	for _, header := range r.Headers {
		record.Headers = append(record.Headers, driver.Header{Name: header.Key, Value: header.Value})
	}
	return record
}

func (c *client) Join(group, topic, instance, assignor string) error {
	note := func(there bool) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, places map[string][]int32) {
			c.lock.Lock()
			defer c.lock.Unlock()
			if there {
				c.rebalances++
			}
			for _, partition := range places[topic] {
				if there {
					c.assigned[partition] = true
				} else {
					delete(c.assigned, partition)
					delete(c.given[topic], partition)
				}
			}
		}
	}
	c.assigned, c.given, c.rebalances, c.late = map[int32]bool{}, map[string]map[int32]kgo.EpochOffset{topic: {}}, 0, nil
	options := []kgo.Opt{kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(), kgo.SessionTimeout(driver.Session(instance)),
		kgo.HeartbeatInterval(500 * time.Millisecond), kgo.FetchMaxWait(200 * time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(note(true)), kgo.OnPartitionsRevoked(note(false)), kgo.OnPartitionsLost(note(false)),
		kgo.Balancers(kgo.RangeBalancer())}
	switch assignor {
	case "cooperative":
		options = append(options, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	case "consumer":
		options = append(options, kgo.Balancers(kgo.StickyBalancer()), kgo.ServerSideBalancer())
	}
	if instance != "" {
		options = append(options, kgo.InstanceID(instance))
	}
	var err error
	c.member, err = open(options...)
	return err
}

func (c *client) Poll(most int, wait time.Duration) ([]int32, []driver.Record, error) {
	if err := c.late; err != nil {
		c.late = nil
		return nil, nil, err
	}
	ctx, cancel := within(wait)
	defer cancel()
	var found []driver.Record
	for len(found) < most && ctx.Err() == nil && c.late == nil {
		fetches := c.member.PollRecords(ctx, most-len(found))
		for _, failed := range fetches.Errors() {
			if !errors.Is(failed.Err, context.DeadlineExceeded) {
				c.late = failed.Err
			}
		}
		found = append(found, c.take(fetches.Records())...)
	}
	if err := c.late; err != nil && len(found) == 0 {
		c.late = nil
		return nil, nil, err
	}
	c.lock.Lock()
	defer c.lock.Unlock()
	var assigned []int32
	for partition := range c.assigned {
		assigned = append(assigned, partition)
	}
	return assigned, found, nil
}

// take notes what is to be committed. A partition that was taken away since is the next owner's.
func (c *client) take(records []*kgo.Record) (found []driver.Record) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, r := range records {
		found = append(found, recordOf(r))
		if c.assigned[r.Partition] {
			c.given[r.Topic][r.Partition] = kgo.EpochOffset{Epoch: r.LeaderEpoch, Offset: r.Offset + 1}
		}
	}
	return found
}

func (c *client) Rebalances() int {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.rebalances
}

// takeGiven empties what is to be committed.
func (c *client) takeGiven() map[string]map[int32]kgo.EpochOffset {
	c.lock.Lock()
	defer c.lock.Unlock()
	given := c.given
	c.given = map[string]map[int32]kgo.EpochOffset{}
	for topic := range given {
		c.given[topic] = map[int32]kgo.EpochOffset{}
	}
	return given
}

func (c *client) Commit() (done []driver.Position, failed error) {
	ctx, cancel := within(10 * time.Second)
	defer cancel()
	given := c.takeGiven()
	c.member.CommitOffsetsSync(ctx, given, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error) {
		failed = err
		for _, topic := range answerTopics(answer) {
			for _, partition := range topic.Partitions {
				if failed == nil {
					failed = kerr.ErrorForCode(partition.ErrorCode)
				}
			}
		}
	})
	for _, partitions := range given {
		for partition, end := range partitions {
			done = append(done, driver.Position{Partition: partition, Offset: end.Offset})
		}
	}
	return done, failed
}

func answerTopics(answer *kmsg.OffsetCommitResponse) []kmsg.OffsetCommitResponseTopic {
	if answer == nil {
		return nil
	}
	return answer.Topics
}

func (c *client) Leave() error {
	ctx, cancel := within(10 * time.Second)
	defer cancel()
	err := c.member.LeaveGroupContext(ctx) // does nothing for a static member of the classic protocol
	c.member.Close()
	return err
}

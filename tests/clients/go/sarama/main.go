// sarama behind the driver protocol: go-sarama [KAFKA-VERSION] BOOTSTRAP. With a version it behaves as it did for a Kafka of that release.
package main

import (
	"errors"
	"os"
	"strconv"
	"time"

	"clients/driver"

	"github.com/IBM/sarama"
)

type client struct {
	boot    []string
	version sarama.KafkaVersion
	member  *member
}

func main() {
	c := client{boot: os.Args[len(os.Args)-1:], version: sarama.V4_0_0_0, member: &member{}}
	if len(os.Args) > 2 {
		version, err := sarama.ParseKafkaVersion(os.Args[1])
		if err != nil {
			panic(err)
		}
		c.version = version
	}
	driver.Serve(c)
}

func (c client) config() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = c.version
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Flush.Frequency = 5 * time.Millisecond
	config.Consumer.Return.Errors = true
	config.Consumer.MaxWaitTime = 200 * time.Millisecond
	return config
}

func (c client) Abilities() string {
	// It writes a null header value as an empty one.
	abilities := "codec:none codec:gzip codec:snappy codec:lz4 codec:zstd idempotent acks0 time headers empty-header repeat-header null-key empty-key tombstone " +
		"empty-value consume create delete grow topics cluster offset offset-time group"
	if c.version.IsAtLeast(sarama.V2_4_0_0) {
		abilities += " static cooperative"
	}
	return abilities
}

func (c client) Code(err error) string {
	var known sarama.KError
	if errors.As(err, &known) {
		return strconv.Itoa(int(known))
	}
	var topic *sarama.TopicError
	if errors.As(err, &topic) {
		return strconv.Itoa(int(topic.Err))
	}
	var partition *sarama.TopicPartitionError
	if errors.As(err, &partition) {
		return strconv.Itoa(int(partition.Err))
	}
	return "FAILED"
}

func (c client) admin(call func(sarama.ClusterAdmin) error) error {
	admin, err := sarama.NewClusterAdmin(c.boot, c.config())
	if err != nil {
		return err
	}
	defer admin.Close()
	return call(admin)
}

func (c client) Create(topic string, partitions, factor int) error {
	return c.admin(func(admin sarama.ClusterAdmin) error {
		return admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: int32(partitions), ReplicationFactor: int16(factor)}, false)
	})
}

func (c client) Delete(topic string) error {
	return c.admin(func(admin sarama.ClusterAdmin) error { return admin.DeleteTopic(topic) })
}

func (c client) Grow(topic string, partitions int) error {
	return c.admin(func(admin sarama.ClusterAdmin) error {
		return admin.CreatePartitions(topic, int32(partitions), nil, false)
	})
}

func (c client) Topics() (map[string]int, error) {
	kafka, err := sarama.NewClient(c.boot, c.config())
	if err != nil {
		return nil, err
	}
	defer kafka.Close()
	names, err := kafka.Topics()
	topics := map[string]int{}
	for _, name := range names {
		partitions, err := kafka.Partitions(name)
		if err != nil {
			return nil, err
		}
		topics[name] = len(partitions)
	}
	return topics, err
}

func (c client) Cluster() (nodes int, controller bool, err error) {
	err = c.admin(func(admin sarama.ClusterAdmin) error {
		brokers, id, err := admin.DescribeCluster()
		for _, broker := range brokers {
			controller = controller || broker.ID() == id
		}
		nodes = len(brokers)
		return err
	})
	return nodes, controller, err
}

func (c client) Offset(topic string, partition int32, where string) (int64, error) {
	kafka, err := sarama.NewClient(c.boot, c.config())
	if err != nil {
		return 0, err
	}
	defer kafka.Close()
	times := map[string]int64{"earliest": sarama.OffsetOldest, "latest": sarama.OffsetNewest}
	at, special := times[where]
	if !special {
		at, _ = strconv.ParseInt(where, 10, 64)
	}
	return kafka.GetOffset(topic, partition, at)
}

func (c client) Produce(topic string, records []driver.Record, codec string, acks int, idempotent bool) ([]driver.Position, error) {
	codecs := map[string]sarama.CompressionCodec{"none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP, "snappy": sarama.CompressionSnappy,
		"lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD}
	config := c.config()
	config.Producer.Compression = codecs[codec]
	config.Producer.RequiredAcks = sarama.RequiredAcks(acks)
	if idempotent {
		config.Producer.Idempotent = true
		config.Net.MaxOpenRequests = 1
	}
	producer, err := sarama.NewSyncProducer(c.boot, config)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	sent := make([]*sarama.ProducerMessage, len(records))
	for i, record := range records {
		sent[i] = &sarama.ProducerMessage{Topic: topic, Partition: record.Partition}
		if record.Key != nil {
			sent[i].Key = sarama.ByteEncoder(record.Key)
		}
		if record.Value != nil {
			sent[i].Value = sarama.ByteEncoder(record.Value)
		}
		if record.Timestamp >= 0 {
			sent[i].Timestamp = time.UnixMilli(record.Timestamp)
		}
		for _, header := range record.Headers {
			sent[i].Headers = append(sent[i].Headers, sarama.RecordHeader{Key: []byte(header.Name), Value: header.Value})
		}
	}
	if err := producer.SendMessages(sent); err != nil {
		var failed sarama.ProducerErrors
		if errors.As(err, &failed) {
			return nil, failed[0].Err
		}
		return nil, err
	}
	positions := make([]driver.Position, len(sent))
	for i, message := range sent {
		positions[i] = driver.Position{Partition: message.Partition, Offset: message.Offset}
		if acks == 0 {
			positions[i].Offset = -1
		}
	}
	return positions, nil
}

func (c client) Consume(topic string, partition int32, offset int64, count int) ([]driver.Record, error) {
	consumer, err := sarama.NewConsumer(c.boot, c.config())
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	from, err := consumer.ConsumePartition(topic, partition, offset)
	if err != nil {
		return nil, err
	}
	defer from.AsyncClose()
	var found []driver.Record
	deadline := time.After(15 * time.Second)
	for len(found) < count {
		select {
		case m := <-from.Messages():
			found = append(found, recordOf(m))
		case failed := <-from.Errors():
			return nil, failed.Err
		case <-deadline:
			return found, nil
		}
	}
	return found, nil
}

func recordOf(m *sarama.ConsumerMessage) driver.Record {
	record := driver.Record{Partition: m.Partition, Offset: m.Offset, Timestamp: m.Timestamp.UnixMilli(), Key: m.Key, Value: m.Value}
	for _, header := range m.Headers {
		record.Headers = append(record.Headers, driver.Header{Name: string(header.Key), Value: header.Value})
	}
	return record
}

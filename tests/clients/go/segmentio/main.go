// segmentio/kafka-go behind the driver protocol: go-segmentio BOOTSTRAP
package main

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"time"

	"clients/driver"

	"github.com/segmentio/kafka-go"
)

type client struct{ kafka *kafka.Client }

func main() {
	driver.Serve(client{&kafka.Client{Addr: kafka.TCP(os.Args[1]), Timeout: 20 * time.Second}})
}

func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

func (c client) Abilities() string {
	// Its reader gives nil for what is empty as well as for what is null.
	return "codec:none codec:gzip codec:snappy codec:lz4 codec:zstd acks0 time headers null-header repeat-header null-key tombstone " +
		"consume create delete grow topics cluster offset offset-time"
}

func (c client) Code(err error) string {
	var known kafka.Error
	if errors.As(err, &known) {
		return strconv.Itoa(int(known))
	}
	return "FAILED"
}

func (c client) Create(topic string, partitions, factor int) error {
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	config := kafka.TopicConfig{Topic: topic, NumPartitions: partitions, ReplicationFactor: factor}
	answer, err := c.kafka.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{config}})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (c client) Delete(topic string) error {
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	answer, err := c.kafka.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (c client) Grow(topic string, partitions int) error {
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	config := kafka.TopicPartitionsConfig{Name: topic, Count: int32(partitions)}
	answer, err := c.kafka.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{Topics: []kafka.TopicPartitionsConfig{config}})
	if err != nil {
		return err
	}
	return answer.Errors[topic]
}

func (c client) Topics() (map[string]int, error) {
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	metadata, err := c.kafka.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return nil, err
	}
	topics := map[string]int{}
	for _, topic := range metadata.Topics {
		topics[topic.Name] = len(topic.Partitions)
	}
	return topics, nil
}

func (c client) Cluster() (int, bool, error) {
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	metadata, err := c.kafka.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{}})
	if err != nil {
		return 0, false, err
	}
	controller := false
	for _, broker := range metadata.Brokers {
		controller = controller || broker.ID == metadata.Controller.ID
	}
	return len(metadata.Brokers), controller, nil
}

func (c client) Offset(topic string, partition int32, where string) (int64, error) {
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	request := kafka.OffsetRequest{Partition: int(partition)}
	switch where {
	case "earliest":
		request = kafka.FirstOffsetOf(int(partition))
	case "latest":
		request = kafka.LastOffsetOf(int(partition))
	default:
		request.Timestamp, _ = strconv.ParseInt(where, 10, 64)
	}
	answer, err := c.kafka.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: {request}}})
	if err != nil {
		return 0, err
	}
	found := answer.Topics[topic][0]
	switch where {
	case "earliest":
		return found.FirstOffset, found.Error
	case "latest":
		return found.LastOffset, found.Error
	}
	for offset := range found.Offsets {
		return offset, found.Error
	}
	return -1, found.Error
}

// place travels with a message through the writer, which has no field for the partition a record wants.
type place struct{ record, partition int }

type byPlace struct{}

func (byPlace) Balance(message kafka.Message, _ ...int) int {
	return message.WriterData.(place).partition
}

func (c client) Produce(topic string, records []driver.Record, codec string, acks int, _ bool) ([]driver.Position, error) {
	codecs := map[string]kafka.Compression{"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd}
	positions := make([]driver.Position, len(records))
	var lock sync.Mutex
	writer := &kafka.Writer{Addr: kafka.TCP(os.Args[1]), Topic: topic, Compression: codecs[codec], RequiredAcks: kafka.RequiredAcks(acks),
		BatchTimeout: 5 * time.Millisecond, BatchBytes: 1 << 20, Balancer: byPlace{}, AllowAutoTopicCreation: true}
	writer.Completion = func(messages []kafka.Message, err error) {
		lock.Lock()
		defer lock.Unlock()
		for _, message := range messages {
			if acks != 0 && err == nil {
				positions[message.WriterData.(place).record].Offset = message.Offset
			}
		}
	}
	sent := make([]kafka.Message, len(records))
	for i, record := range records {
		positions[i] = driver.Position{Partition: record.Partition, Offset: -1}
		sent[i] = kafka.Message{Key: record.Key, Value: record.Value, WriterData: place{i, int(record.Partition)}}
		if record.Timestamp >= 0 {
			sent[i].Time = time.UnixMilli(record.Timestamp)
		}
		for _, header := range record.Headers {
			sent[i].Headers = append(sent[i].Headers, kafka.Header{Key: header.Name, Value: header.Value})
		}
	}
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	err := writer.WriteMessages(ctx, sent...)
	var failed kafka.WriteErrors
	if errors.As(err, &failed) {
		for _, one := range failed {
			if one != nil {
				err = one
			}
		}
	}
	return positions, errors.Join(err, writer.Close())
}

func (c client) Consume(topic string, partition int32, offset int64, count int) ([]driver.Record, error) {
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{os.Args[1]}, Topic: topic, Partition: int(partition),
		MaxWait: 200 * time.Millisecond, OffsetOutOfRangeError: true})
	defer reader.Close()
	if err := reader.SetOffset(offset); err != nil {
		return nil, err
	}
	ctx, cancel := within(15 * time.Second)
	defer cancel()
	var found []driver.Record
	for len(found) < count {
		m, err := reader.ReadMessage(ctx)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return nil, err
		}
		record := driver.Record{Partition: int32(m.Partition), Offset: m.Offset, Timestamp: m.Time.UnixMilli(), Key: m.Key, Value: m.Value}
		for _, header := range m.Headers {
			record.Headers = append(record.Headers, driver.Header{Name: header.Key, Value: header.Value})
		}
		found = append(found, record)
	}
	return found, nil
}

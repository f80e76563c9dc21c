// franz-go behind the driver protocol: go-franz BOOTSTRAP
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"strconv"
	"time"

	"clients/driver"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

type client struct{ admin *kadm.Client }

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
	driver.Serve(client{kadm.NewClient(kafka)})
}

func (c client) Abilities() string {
	return "codec:none codec:gzip codec:snappy codec:lz4 codec:zstd idempotent acks0 time headers empty-header null-header repeat-header null-key empty-key " +
		"tombstone empty-value consume create delete grow topics cluster offset offset-time offset-max"
}

func (c client) Code(err error) string {
	var known *kerr.Error
	if errors.As(err, &known) {
		return strconv.Itoa(int(known.Code))
	}
	return "FAILED"
}

func (c client) Create(topic string, partitions, factor int) error {
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	_, err := c.admin.CreateTopic(ctx, int32(partitions), int16(factor), nil, topic)
	return err
}

func (c client) Delete(topic string) error {
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	_, err := c.admin.DeleteTopic(ctx, topic)
	return err
}

func (c client) Grow(topic string, partitions int) error {
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	answers, err := c.admin.UpdatePartitions(ctx, partitions, topic)
	if err != nil {
		return err
	}
	return answers.Error()
}

func (c client) Topics() (map[string]int, error) {
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	details, err := c.admin.ListTopics(ctx)
	topics := map[string]int{}
	for name, topic := range details {
		topics[name] = len(topic.Partitions)
	}
	return topics, err
}

func (c client) Cluster() (int, bool, error) {
	ctx, cancel := within(20 * time.Second)
	defer cancel()
	metadata, err := c.admin.BrokerMetadata(ctx)
	controller := false
	for _, node := range metadata.Brokers {
		controller = controller || node.NodeID == metadata.Controller
	}
	return len(metadata.Brokers), controller, err
}

func (c client) Offset(topic string, partition int32, where string) (int64, error) {
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

func (c client) Produce(topic string, records []driver.Record, codec string, acks int, idempotent bool) ([]driver.Position, error) {
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

func (c client) Consume(topic string, partition int32, offset int64, count int) ([]driver.Record, error) {
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
			record := driver.Record{Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli(), Key: r.Key, Value: r.Value}
			for _, header := range r.Headers {
				record.Headers = append(record.Headers, driver.Header{Name: header.Key, Value: header.Value})
			}
			found = append(found, record)
		}
	}
	return found, nil
}

// Package driver is the driver protocol (../README.md) for client libraries in Go.
package driver

import (
	"bufio"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Record is a record of the data set. A nil key or value is null; Timestamp -1 lets the client choose.
type Record struct {
	Partition  int32
	Offset     int64
	Timestamp  int64
	Key, Value []byte
	Headers    []Header
}

// Header is a record header; a nil value is null.
type Header struct {
	Name  string
	Value []byte
}

// Position is where the server says a record is; offset -1 when it did not say.
type Position struct {
	Partition int32
	Offset    int64
}

// Client is what a driver implements. Offset takes "earliest", "latest", "max" or milliseconds and gives -1 for none.
type Client interface {
	Abilities() string
	Create(topic string, partitions, factor int) error
	Delete(topic string) error
	Grow(topic string, partitions int) error
	Topics() (map[string]int, error)
	Cluster() (nodes int, controller bool, err error)
	Produce(topic string, records []Record, codec string, acks int, idempotent bool) ([]Position, error)
	Consume(topic string, partition int32, offset int64, count int) ([]Record, error)
	Offset(topic string, partition int32, where string) (int64, error)
	Code(err error) string
}

// Member is what a client that has consumer groups implements as well; its abilities then have the word group. Poll gives what is assigned
// now and at most most records, as soon as there are so many, else when the time is over, or an error when there are none; Commit commits what
// Poll gave and was not taken away since, and says it; Rebalances is how often the member was told of an assignment.
type Member interface {
	Join(group, topic, instance, assignor string) error
	Poll(most int, wait time.Duration) (assigned []int32, records []Record, err error)
	Commit() ([]Position, error)
	Rebalances() int
	Leave() error
}

// Session is a member's session timeout: longer for a static member, whose next process has to come within it.
func Session(instance string) time.Duration {
	if instance != "" {
		return 12 * time.Second
	}
	return 6 * time.Second
}

// Failure is an error with a word of its own instead of a number of Kafka's.
type Failure struct{ Word, Text string }

func (f Failure) Error() string { return f.Text }

// Serve answers commands until standard input ends.
func Serve(client Client) {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<20)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		answer, lines, err := handle(client, fields[0], fields[1:], in)
		if err != nil {
			word := client.Code(err)
			var failure Failure
			if errors.As(err, &failure) {
				word = failure.Word
			}
			answer, lines = []string{"err", word, strings.NewReplacer("\n", " ", "\t", " ").Replace(err.Error())}, nil
		} else {
			answer = append([]string{"ok"}, answer...)
		}
		fmt.Fprintln(out, strings.Join(answer, "\t"))
		for _, line := range lines {
			fmt.Fprintln(out, line)
		}
		out.Flush()
	}
}

func handle(client Client, command string, a []string, in *bufio.Reader) (answer, lines []string, err error) {
	switch command {
	case "hello":
		return strings.Fields(client.Abilities()), nil, nil
	case "create":
		return nil, nil, client.Create(a[0], number(a[1]), number(a[2]))
	case "delete":
		return nil, nil, client.Delete(a[0])
	case "grow":
		return nil, nil, client.Grow(a[0], number(a[1]))
	case "topics":
		topics, err := client.Topics()
		for name, partitions := range topics {
			answer = append(answer, fmt.Sprintf("%s=%d", name, partitions))
		}
		return answer, nil, err
	case "cluster":
		nodes, controller, err := client.Cluster()
		return []string{strconv.Itoa(nodes), map[bool]string{true: "yes", false: "no"}[controller]}, nil, err
	case "produce":
		return produce(client, a, in)
	case "consume":
		records, err := client.Consume(a[0], int32(number(a[1])), int64(number(a[2])), number(a[3]))
		for _, record := range records {
			lines = append(lines, format(record))
		}
		return []string{strconv.Itoa(len(records))}, lines, err
	case "offset":
		offset, err := client.Offset(a[0], int32(number(a[1])), a[2])
		if offset < 0 {
			return []string{"-"}, nil, err
		}
		return []string{strconv.FormatInt(offset, 10)}, nil, err
	}
	if member, ok := client.(Member); ok {
		return handleMember(member, command, a)
	}
	return nil, nil, Failure{"UNKNOWN", "no such command: " + command}
}

func handleMember(member Member, command string, a []string) (answer, lines []string, err error) {
	switch command {
	case "join":
		return nil, nil, member.Join(a[0], a[1], strings.TrimPrefix(a[2], "-"), a[3])
	case "commit":
		positions, err := member.Commit()
		return places(positions), nil, err
	case "rebalances":
		return []string{strconv.Itoa(member.Rebalances())}, nil, nil
	case "leave":
		return nil, nil, member.Leave()
	case "poll":
		assigned, records, err := member.Poll(number(a[0]), time.Duration(number(a[1]))*time.Millisecond)
		var names []string
		for _, partition := range assigned {
			names = append(names, strconv.Itoa(int(partition)))
		}
		if len(names) == 0 {
			names = []string{"-"}
		}
		for _, record := range records {
			lines = append(lines, format(record))
		}
		return []string{strings.Join(names, ","), strconv.Itoa(len(records))}, lines, err
	}
	return nil, nil, Failure{"UNKNOWN", "no such command: " + command}
}

func produce(client Client, a []string, in *bufio.Reader) (answer, lines []string, err error) {
	records := make([]Record, number(a[4]))
	for i := range records {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, nil, err
		}
		records[i] = parse(strings.TrimSuffix(line, "\n"))
	}
	positions, err := client.Produce(a[0], records, a[1], number(a[2]), a[3] == "yes")
	return places(positions), nil, err
}

func places(positions []Position) (fields []string) {
	for _, position := range positions {
		fields = append(fields, fmt.Sprintf("%d:%d", position.Partition, position.Offset))
	}
	return fields
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

func parse(line string) Record {
	f := strings.Split(line, "\t")
	record := Record{Partition: int32(number(f[0])), Timestamp: -1, Key: unpack(f[3]), Value: unpack(f[4])}
	if f[2] != "-" {
		record.Timestamp = int64(number(f[2]))
	}
	if f[5] != "-" {
		for _, header := range strings.Split(f[5], ",") {
			name, value, _ := strings.Cut(header, "=")
			record.Headers = append(record.Headers, Header{string(unpack(name)), unpack(value)})
		}
	}
	return record
}

func format(record Record) string {
	headers := "-"
	for i, header := range record.Headers {
		if i == 0 {
			headers = ""
		} else {
			headers += ","
		}
		headers += pack([]byte(header.Name)) + "=" + pack(header.Value)
	}
	return fmt.Sprintf("%d\t%d\t%d\t%s\t%s\t%s", record.Partition, record.Offset, record.Timestamp, pack(record.Key), pack(record.Value), headers)
}

func pack(data []byte) string {
	if data == nil {
		return "-"
	}
	return "x" + hex.EncodeToString(data)
}

func unpack(text string) []byte {
	if text == "-" {
		return nil
	}
	data, err := hex.DecodeString(text[1:])
	if err != nil {
		panic(err)
	}
	return data
}

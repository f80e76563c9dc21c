import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Apache Kafka's Java client behind the driver protocol (../README.md): ClientDriver BOOTSTRAP. */
public class ClientDriver {
    static final String ABILITIES =
            "codec:none codec:gzip codec:snappy codec:lz4 codec:zstd idempotent acks0 time headers empty-header null-header repeat-header null-key "
                    + "empty-key tombstone empty-value consume commit create delete grow topics cluster offset offset-time offset-max group cooperative static consumer-protocol alter trim";
    static final String PATTERN = "org.apache.kafka.clients.consumer.SubscriptionPattern"; // from 4.0 on
    static final int SECONDS = 20;

    final BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    final PrintStream out = new PrintStream(System.out, false, StandardCharsets.US_ASCII);
    final String bootstrap;
    final Admin admin;
    KafkaConsumer<byte[], byte[]> member;
    final ArrayDeque<ConsumerRecord<byte[], byte[]>> waiting = new ArrayDeque<>();
    final Map<TopicPartition, OffsetAndMetadata> given = new HashMap<>();

    ClientDriver(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(settings());
    }

    public static void main(String[] arguments) throws IOException {
        new ClientDriver(arguments[0]).serve();
        System.exit(0);
    }

    Properties settings(String... pairs) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("default.api.timeout.ms", "20000");
        settings.put("request.timeout.ms", "15000");
        for (int i = 0; i < pairs.length; i += 2) settings.put(pairs[i], pairs[i + 1]);
        return settings;
    }

    void serve() throws IOException {
        for (String line; (line = in.readLine()) != null; ) {
            StringBuilder answer = new StringBuilder("ok");
            try {
                String[] fields = line.split("\t", -1);
                handle(fields[0], Arrays.copyOfRange(fields, 1, fields.length), answer);
            } catch (Exception error) {
                Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
                String text = cause.toString().replace('\n', ' ').replace('\t', ' ');
                answer = new StringBuilder("err\t" + codeOf(cause) + "\t" + text);
            }
            out.append(answer).append('\n').flush();
        }
    }

    static String codeOf(Throwable error) {
        if (error instanceof OffsetOutOfRangeException) return "1";
        Errors known = Errors.forException(error);
        return known == Errors.UNKNOWN_SERVER_ERROR ? error.getClass().getSimpleName() : String.valueOf(known.code());
    }

    static boolean hasPattern() {
        try {
            Class.forName(PATTERN);
            return true;
        } catch (ClassNotFoundException error) {
            return false;
        }
    }

    void handle(String command, String[] a, StringBuilder answer) throws Exception {
        switch (command) {
            case "hello" -> answer.append('\t').append(ABILITIES.replace(' ', '\t')).append(hasPattern() ? "\tpattern" : "");
            case "create" -> get(admin.createTopics(List.of(new NewTopic(a[0], Integer.parseInt(a[1]), Short.parseShort(a[2])))).all());
            case "delete" -> get(admin.deleteTopics(List.of(a[0])).all());
            case "grow" -> get(admin.createPartitions(Map.of(a[0], NewPartitions.increaseTo(Integer.parseInt(a[1])))).all());
            case "trim" -> {
                var place = new TopicPartition(a[0], Integer.parseInt(a[1]));
                var deleted = admin.deleteRecords(Map.of(place, RecordsToDelete.beforeOffset(Long.parseLong(a[2]))));
                answer.append('\t').append(get(deleted.lowWatermarks().get(place)).lowWatermark());
            }
            case "topics" -> topics(answer);
            case "cluster" -> cluster(answer);
            case "produce" -> produce(a, answer);
            case "consume" -> consume(new TopicPartition(a[0], Integer.parseInt(a[1])), Long.parseLong(a[2]), Integer.parseInt(a[3]), answer);
            case "offset" -> offset(new TopicPartition(a[0], Integer.parseInt(a[1])), a[2], answer);
            case "join" -> join(a[0], a[1], a[2], a[3]);
            case "poll" -> poll(Integer.parseInt(a[0]), Long.parseLong(a[1]), answer);
            case "commit" -> {
                var all = Map.copyOf(given);
                given.clear();
                member.commitSync(all);
            }
            case "leave" -> member.close();
            case "commit-at" -> commitAt(a[0], new TopicPartition(a[1], Integer.parseInt(a[2])), Long.parseLong(a[3]), a[4]);
            case "committed" -> committed(a[0], new TopicPartition(a[1], Integer.parseInt(a[2])), answer);
            case "alter" -> {
                var place = new TopicPartition(a[1], Integer.parseInt(a[2]));
                get(admin.alterConsumerGroupOffsets(a[0], Map.of(place, new OffsetAndMetadata(Long.parseLong(a[3])))).all());
            }
            case "list" -> list(a[0], answer);
            default -> throw new IllegalArgumentException(command);
        }
    }

    static <T> T get(Future<T> future) throws Exception {
        return future.get(SECONDS, TimeUnit.SECONDS);
    }

    void topics(StringBuilder answer) throws Exception {
        var names = get(admin.listTopics().names());
        var all = admin.describeTopics(names).topicNameValues();
        for (var one : all.entrySet()) {
            try {
                answer.append('\t').append(one.getKey()).append('=').append(get(one.getValue()).partitions().size());
            } catch (ExecutionException goneMeanwhile) {
                answer.setLength(answer.lastIndexOf("\t"));
            }
        }
    }

    void cluster(StringBuilder answer) throws Exception {
        var cluster = admin.describeCluster();
        var nodes = get(cluster.nodes());
        Node controller = get(cluster.controller());
        answer.append('\t').append(nodes.size()).append('\t').append(nodes.contains(controller) ? "yes" : "no");
    }

    void offset(TopicPartition place, String where, StringBuilder answer) throws Exception {
        OffsetSpec spec = switch (where) {
            case "earliest" -> OffsetSpec.earliest();
            case "latest" -> OffsetSpec.latest();
            case "max" -> OffsetSpec.maxTimestamp();
            default -> OffsetSpec.forTimestamp(Long.parseLong(where));
        };
        long offset = get(admin.listOffsets(Map.of(place, spec)).partitionResult(place)).offset();
        answer.append('\t').append(offset < 0 ? "-" : String.valueOf(offset));
    }

    void produce(String[] a, StringBuilder answer) throws Exception {
        String topic = a[0], acks = a[2];
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = Integer.parseInt(a[4]); i > 0; i--) records.add(parse(topic, in.readLine().split("\t", -1)));
        Properties settings = settings("compression.type", a[1], "acks", acks, "linger.ms", "5", "delivery.timeout.ms", "20000",
                "enable.idempotence", a[3].equals("yes") ? "true" : "false", "max.block.ms", "15000");
        try (var producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (var record : records) sent.add(producer.send(record));
            for (var future : sent) {
                RecordMetadata done = get(future);
                answer.append('\t').append(done.partition()).append(':').append(done.hasOffset() ? done.offset() : -1);
            }
        }
    }

    void consume(TopicPartition place, long offset, int count, StringBuilder answer) {
        Properties settings = settings("auto.offset.reset", "none", "enable.auto.commit", "false", "fetch.max.wait.ms", "200");
        List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(place));
            consumer.seek(place, offset);
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(15);
            while (found.size() < count && System.nanoTime() < deadline) {
                for (var record : consumer.poll(Duration.ofMillis(500))) if (found.size() < count) found.add(record);
            }
        }
        answer.append('\t').append(found.size());
        for (var record : found) answer.append('\n').append(format(record));
    }

    void join(String group, String topic, String instance, String assignor) throws ReflectiveOperationException {
        Properties settings = settings("group.id", group, "enable.auto.commit", "false", "auto.offset.reset", "earliest", "fetch.max.wait.ms", "200");
        if (assignor.equals("consumer") || assignor.equals("pattern")) settings.put("group.protocol", "consumer"); // its times are the server's
        else settings.putAll(Map.of("session.timeout.ms", "6000", "heartbeat.interval.ms", "500"));
        if (!instance.equals("-")) settings.put("group.instance.id", instance);
        if (assignor.equals("cooperative")) settings.put("partition.assignment.strategy", CooperativeStickyAssignor.class.getName());
        member = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        waiting.clear();
        given.clear();
        var listener = new ConsumerRebalanceListener() {
            @Override public void onPartitionsAssigned(Collection<TopicPartition> places) {}
            @Override public void onPartitionsRevoked(Collection<TopicPartition> places) {
                waiting.removeIf(record -> places.contains(new TopicPartition(record.topic(), record.partition())));
            }
        };
        if (!assignor.equals("pattern")) {
            member.subscribe(List.of(topic), listener);
            return;
        }
        Class<?> pattern = Class.forName(PATTERN);
        var subscribe = KafkaConsumer.class.getMethod("subscribe", pattern, ConsumerRebalanceListener.class);
        subscribe.invoke(member, pattern.getConstructor(String.class).newInstance(topic), listener);
    }

    void poll(int most, long ms, StringBuilder answer) {
        List<ConsumerRecord<byte[], byte[]>> found = new ArrayList<>();
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms);
        do {
            long left = Math.max(0, TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime()));
            for (var record : member.poll(Duration.ofMillis(waiting.isEmpty() ? left : 0))) waiting.add(record);
            while (found.size() < most && !waiting.isEmpty()) found.add(waiting.poll());
        } while (found.size() < most && System.nanoTime() < deadline);
        for (var record : found) given.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
        List<String> assigned = new ArrayList<>();
        for (var place : member.assignment()) assigned.add(String.valueOf(place.partition()));
        answer.append('\t').append(assigned.isEmpty() ? "-" : String.join(",", assigned)).append('\t').append(found.size());
        for (var record : found) answer.append('\n').append(format(record));
    }

    KafkaConsumer<byte[], byte[]> member(String group, TopicPartition place) {
        Properties settings = settings("group.id", group, "enable.auto.commit", "false");
        var consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        consumer.assign(List.of(place));
        return consumer;
    }

    void commitAt(String group, TopicPartition place, long offset, String metadata) {
        try (var consumer = member(group, place)) {
            consumer.commitSync(Map.of(place, new OffsetAndMetadata(offset, new String(unpack(metadata), StandardCharsets.UTF_8))));
        }
    }

    void committed(String group, TopicPartition place, StringBuilder answer) {
        try (var consumer = member(group, place)) {
            OffsetAndMetadata found = consumer.committed(Set.of(place)).get(place);
            answer.append('\t').append(found == null ? "-" : String.valueOf(found.offset()));
            answer.append('\t').append(pack((found == null ? "" : found.metadata()).getBytes(StandardCharsets.UTF_8)));
        }
    }

    void list(String group, StringBuilder answer) throws Exception {
        var found = get(admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata());
        found.entrySet().stream()
                .map(one -> one.getKey().topic() + ":" + one.getKey().partition() + "=" + one.getValue().offset())
                .sorted()
                .forEach(text -> answer.append('\t').append(text));
    }

    static ProducerRecord<byte[], byte[]> parse(String topic, String[] field) {
        Headers headers = new RecordHeaders();
        if (!field[5].equals("-")) {
            for (String header : field[5].split(",")) {
                String[] pair = header.split("=", 2);
                headers.add(new RecordHeader(new String(unpack(pair[0]), StandardCharsets.UTF_8), unpack(pair[1])));
            }
        }
        Long timestamp = field[2].equals("-") ? null : Long.valueOf(field[2]);
        return new ProducerRecord<>(topic, Integer.valueOf(field[0]), timestamp, unpack(field[3]), unpack(field[4]), headers);
    }

    static String format(ConsumerRecord<byte[], byte[]> record) {
        List<String> headers = new ArrayList<>();
        for (Header header : record.headers()) headers.add(pack(header.key().getBytes(StandardCharsets.UTF_8)) + "=" + pack(header.value()));
        return String.join("\t", String.valueOf(record.partition()), String.valueOf(record.offset()), String.valueOf(record.timestamp()),
                pack(record.key()), pack(record.value()), headers.isEmpty() ? "-" : String.join(",", headers));
    }

    static String pack(byte[] data) {
        return data == null ? "-" : "x" + java.util.HexFormat.of().formatHex(data);
    }

    static byte[] unpack(String text) {
        return text.equals("-") ? null : java.util.HexFormat.of().parseHex(text, 1, text.length());
    }
}

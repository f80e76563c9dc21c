import java.util.Arrays;
import java.util.Properties;
import java.util.TreeSet;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * WordCount INPUT OUTPUT KEY=VALUE...: counts the words of the lines in topic INPUT, and writes every new count to OUTPUT under its word. KEY=VALUE
 * are settings of Kafka Streams.
 *
 * <p>Prints {@code state NAME} whenever its state changes, and {@code tasks NAME...}, those it works on, whenever they do. It ends by a signal, or
 * with status 1 when Kafka Streams gives up.
 */
class WordCount {
    public static void main(String[] args) throws InterruptedException {
        Properties settings = new Properties();
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        for (String setting : Arrays.asList(args).subList(2, args.length)) {
            settings.put(setting.split("=", 2)[0], setting.split("=", 2)[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(args[0])
                .flatMapValues(line -> Arrays.asList(line.split(" ")))
                .groupBy((key, word) -> word, Grouped.as("words")) // by way of APPLICATION-words-repartition
                .count(Materialized.as("counts")) // kept in APPLICATION-counts-changelog
                .toStream()
                .to(args[1], Produced.with(Serdes.String(), Serdes.Long()));

        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setStateListener((now, before) -> System.out.println("state " + now));
        streams.start();
        for (String shown = ""; streams.state() != KafkaStreams.State.ERROR; Thread.sleep(50)) {
            TreeSet<String> tasks = new TreeSet<>();
            streams.metadataForLocalThreads().forEach(thread -> thread.activeTasks().forEach(task -> tasks.add(task.taskId().toString())));
            if (!shown.equals(shown = "tasks " + String.join(" ", tasks))) System.out.println(shown);
        }
        Runtime.getRuntime().halt(1);
    }
}

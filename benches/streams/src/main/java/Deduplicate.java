import java.io.IOException;
import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * Kafka Streams as a contender of {@code scripts/bench streams}: passes on the first record of each
 * key, with the keys in a persistent store (RocksDB, with its changelog) and
 * {@code processing.guarantee=exactly_once_v2}.
 *
 * <p>Its job comes in the environment, as that of the other contenders (benches/peers/src/job.rs).
 * It prints "begun" when it has handled the records that warm it up, and stops when its standard
 * input ends.
 */
public final class Deduplicate {
    private static final String STORE = "seen";
    private static final Duration STOP_LIMIT = Duration.ofSeconds(30);

    private Deduplicate() {}

    public static void main(String[] arguments) throws IOException {
        try (KafkaStreams streams = new KafkaStreams(topology(), settings())) {
            streams.setUncaughtExceptionHandler(error -> {
                error.printStackTrace();
                Runtime.getRuntime().halt(1);
                return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
            streams.start();
            while (System.in.read() >= 0) {
                // Nothing is told but the end.
            }
            streams.close(STOP_LIMIT);
        }
    }

    private static Properties settings() {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, told("GROUP"));
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, told("BOOTSTRAP"));
        settings.put(StreamsConfig.STATE_DIR_CONFIG, told("DIRECTORY"));
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        String interval = System.getenv("BENCH_COMMIT_INTERVAL_MS");
        if (interval != null) {
            settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, interval);
        }
        return settings;
    }

    private static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.addStateStore(Stores.keyValueStoreBuilder(
                Stores.persistentKeyValueStore(STORE), Serdes.ByteArray(), Serdes.Long()));
        KStream<byte[], byte[]> first = builder
                .stream(told("TOPIC"), Consumed.with(Serdes.ByteArray(), Serdes.ByteArray()))
                .process(First::new, STORE);
        String to = told("TO");
        if (!to.isEmpty()) {
            first.to(to, Produced.with(Serdes.ByteArray(), Serdes.ByteArray()));
        }
        return builder.build();
    }

    private static String told(String name) {
        String value = System.getenv("BENCH_" + name);
        if (value == null) {
            throw new IllegalStateException("BENCH_" + name + " is not set: run scripts/bench streams");
        }
        return value;
    }

    /** Forwards a record whose key is not in the store, and puts the key there. */
    private static final class First implements Processor<byte[], byte[], byte[], byte[]> {
        private final long warmUp = Long.parseLong(told("WARM_UP"));
        private long handled;
        private ProcessorContext<byte[], byte[]> context;
        private KeyValueStore<byte[], Long> seen;

        @Override
        public void init(ProcessorContext<byte[], byte[]> context) {
            this.context = context;
            seen = context.getStateStore(STORE);
        }

        @Override
        public void process(Record<byte[], byte[]> record) {
            if (seen.putIfAbsent(record.key(), record.timestamp()) == null) {
                context.forward(record);
            }
            if (++handled == warmUp) {
                System.out.println("begun");
            }
        }
    }
}

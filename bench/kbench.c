/*
 * A light load generator on librdkafka, for comparing servers on one machine (./run drives it).
 *
 *   kbench create BOOTSTRAP TOPIC PARTITIONS
 *   kbench delete BOOTSTRAP TOPIC
 *   kbench produce BOOTSTRAP TOPIC PARTITIONS COUNT SIZE ACKS CODEC     as fast as it goes: linger 5 ms, batches of 64 KiB
 *   kbench consume BOOTSTRAP TOPIC PARTITIONS COUNT                     all partitions from the beginning until COUNT records
 *   kbench latency BOOTSTRAP TOPIC PARTITIONS COUNT SIZE ACKS RATE      from produce to consume at a steady RATE a second, linger 0
 *   kbench single BOOTSTRAP TOPIC PARTITIONS COUNT SIZE ACKS            from produce to its answer, the next one after that, linger 0
 *
 * Words of the form key=value may follow: settings of librdkafka, over those above.
 * Prints one line of key=value: n, errors, seconds, records_s, mb_s, cpu (its own CPU seconds), latencies in microseconds.
 */
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_US     (300 * 1000000LL)
#define VALUES_COUNT 256

struct load {
    const char *bootstrap, *topic, *acks, *codec;
    int partitions;
    long count;
    size_t size_bytes;
    double rate;     /* records a second; 0: no limit */
    bool one_by_one; /* as for a rate: a record doesn't wait for others */
    char **settings; /* "key=value" */
    int settings_count;
};

struct delivered {
    long ok, failed;
    const char *first_error;
};

struct tail { /* the consumer beside a latency run */
    const struct load *load;
    int64_t *latency_us;
    long count, count_max;
    atomic_bool ready, stop;
};

static int64_t now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static double cpu_seconds(void) {
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static void die(const char *text) {
    fprintf(stderr, "kbench: %s\n", text);
    exit(1);
}

static void set(rd_kafka_conf_t *conf, const char *key, const char *value) {
    char text[256];
    if (rd_kafka_conf_set(conf, key, value, text, sizeof text))
        die(text);
}

static rd_kafka_t *client_new(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
    char text[256];
    rd_kafka_t *client = rd_kafka_new(type, conf, text, sizeof text);
    if (!client)
        die(text);
    return client;
}

static rd_kafka_conf_t *conf_new(const struct load *l) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "bootstrap.servers", l->bootstrap);
    return conf;
}

/* What was asked for on the command line. */
static void settings_apply(rd_kafka_conf_t *conf, const struct load *l) {
    for (int i = 0; i < l->settings_count; i++) {
        char key[128];
        const char *value = strchr(l->settings[i], '=');
        snprintf(key, sizeof key, "%.*s", (int)(value - l->settings[i]), l->settings[i]);
        set(conf, key, value + 1);
    }
}

static int admin(const struct load *l, int create) {
    char text[256];
    rd_kafka_t *client = client_new(RD_KAFKA_PRODUCER, conf_new(l));
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    if (create) {
        rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(l->topic, l->partitions, 1, text, sizeof text);
        rd_kafka_CreateTopics(client, &topic, 1, NULL, queue);
    } else {
        rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(l->topic);
        rd_kafka_DeleteTopics(client, &topic, 1, NULL, queue);
    }
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 15000);
    if (!event || rd_kafka_event_error(event))
        die(event ? rd_kafka_event_error_string(event) : "no answer");
    usleep(300000); /* a Kafka broker publishes it a moment later */
    return 0;
}

/* Values that compress to about a half: words of a small vocabulary between random digits. */
static void values_fill(char *out, size_t size) {
    static const char *words[] = {"\"user\":", "\"event\":\"click\",", "\"ts\":17000",
                                  "session=",  "GET /index.html ",     "status=200 "};
    unsigned state = 12345;
    for (size_t at = 0; at < size;) {
        state = state * 1103515245u + 12345;
        for (const char *word = words[(state >> 16) % 6]; *word && at < size; word++)
            out[at++] = *word;
        for (int i = 0; i < 10 && at < size; i++) {
            state = state * 1103515245u + 12345;
            out[at++] = "0123456789abcdef"[state >> 16 & 15];
        }
    }
}

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client;
    struct delivered *d = opaque;
    if (!message->err)
        d->ok++;
    else if (d->failed++ == 0)
        d->first_error = rd_kafka_err2str(message->err);
}

static rd_kafka_t *producer_new(const struct load *l, struct delivered *d) {
    rd_kafka_conf_t *conf = conf_new(l);
    set(conf, "linger.ms", l->one_by_one ? "0" : "5");
    set(conf, "batch.size", "65536");
    set(conf, "compression.type", l->codec);
    set(conf, "acks", l->acks);
    set(conf, "queue.buffering.max.messages", "1000000");
    set(conf, "queue.buffering.max.kbytes", "262144");
    settings_apply(conf, l);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_conf_set_opaque(conf, d);
    return client_new(RD_KAFKA_PRODUCER, conf);
}

static rd_kafka_t *consumer_new(const struct load *l, int at_end) {
    rd_kafka_conf_t *conf = conf_new(l);
    set(conf, "group.id", "kbench");
    set(conf, "enable.auto.commit", "false");
    set(conf, "auto.offset.reset", "earliest");
    if (!at_end) {
        set(conf, "queued.max.messages.kbytes", "131072");
        set(conf, "queued.min.messages", "1000000");
    }
    settings_apply(conf, l);
    rd_kafka_t *client = client_new(RD_KAFKA_CONSUMER, conf);
    rd_kafka_poll_set_consumer(client);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(l->partitions);
    for (int p = 0; p < l->partitions; p++) {
        int64_t low = 0, high = 0;
        if (at_end && rd_kafka_query_watermark_offsets(client, l->topic, p, &low, &high, 10000))
            die("no offsets");
        rd_kafka_topic_partition_list_add(list, l->topic, p)->offset = high;
    }
    rd_kafka_assign(client, list);
    rd_kafka_topic_partition_list_destroy(list);
    return client;
}

static void send_one(rd_kafka_t *client, rd_kafka_topic_t *topic, int partition, void *value, size_t size,
                     int flags) {
    while (rd_kafka_produce(topic, partition, flags, value, size, NULL, 0, NULL) == -1) {
        if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
            die(rd_kafka_err2str(rd_kafka_last_error()));
        rd_kafka_poll(client, 10);
    }
}

/* One record that carries the time it was due, in its first 8 bytes. */
static void send_stamped(rd_kafka_t *client, rd_kafka_topic_t *topic, const struct load *l, long number,
                         char *value, int64_t due_us) {
    for (int64_t wait; (wait = due_us - now_us()) > 0;) {
        if (wait > 60)
            usleep((useconds_t)wait - 50);
    }
    int64_t sent_us = now_us();
    memcpy(value, &sent_us, sizeof sent_us);
    send_one(client, topic, (int)(number % l->partitions), value, l->size_bytes, RD_KAFKA_MSG_F_COPY);
    rd_kafka_poll(client, 0);
}

static int produce(const struct load *l) {
    struct delivered d = {0};
    rd_kafka_t *client = producer_new(l, &d);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, l->topic, NULL);
    const struct rd_kafka_metadata *metadata;
    rd_kafka_metadata(client, 0, topic, &metadata, 10000);
    char *values = malloc(l->size_bytes * VALUES_COUNT);
    values_fill(values, l->size_bytes * VALUES_COUNT);

    double cpu = cpu_seconds();
    int64_t start = now_us();
    for (long i = 0; i < l->count; i++) {
        send_one(client, topic, (int)(i % l->partitions), values + (size_t)(i % VALUES_COUNT) * l->size_bytes,
                 l->size_bytes, 0);
        if ((i & 63) == 0)
            rd_kafka_poll(client, 0);
    }
    while (d.ok + d.failed < l->count && now_us() - start < LIMIT_US)
        rd_kafka_poll(client, 100);
    double seconds = (double)(now_us() - start) / 1e6;
    printf("n=%ld errors=%ld seconds=%.3f records_s=%.0f mb_s=%.1f cpu=%.2f%s%s\n", d.ok, d.failed, seconds,
           (double)d.ok / seconds, (double)d.ok / seconds * (double)l->size_bytes / 1e6, cpu_seconds() - cpu,
           d.failed ? " first_error=" : "", d.failed ? d.first_error : "");
    return d.ok == l->count ? 0 : 1;
}

static int consume(const struct load *l) {
    enum { BATCH = 2000 };
    static rd_kafka_message_t *messages[BATCH];
    rd_kafka_t *client = consumer_new(l, 0);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(client);
    double cpu = cpu_seconds();
    int64_t start = now_us(), bytes = 0;
    long n = 0, errors = 0;
    while (n < l->count && now_us() - start < LIMIT_US) {
        ssize_t got = rd_kafka_consume_batch_queue(queue, 200, messages, BATCH);
        for (ssize_t i = 0; i < got; i++) {
            errors += messages[i]->err != 0;
            n += messages[i]->err == 0;
            bytes += messages[i]->err ? 0 : (int64_t)messages[i]->len;
            rd_kafka_message_destroy(messages[i]);
        }
    }
    double seconds = (double)(now_us() - start) / 1e6;
    printf("n=%ld errors=%ld seconds=%.3f records_s=%.0f mb_s=%.1f cpu=%.2f\n", n, errors, seconds,
           (double)n / seconds, (double)bytes / seconds / 1e6, cpu_seconds() - cpu);
    return n >= l->count ? 0 : 1;
}

static void *tail_run(void *argument) {
    struct tail *t = argument;
    rd_kafka_t *client = consumer_new(t->load, 1);
    atomic_store(&t->ready, true);
    while (!atomic_load(&t->stop)) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(client, 100);
        if (!m)
            continue;
        int64_t sent_us = 0;
        if (!m->err && m->len >= sizeof sent_us)
            memcpy(&sent_us, m->payload, sizeof sent_us);
        if (sent_us > 0 && t->count < t->count_max)
            t->latency_us[t->count++] = now_us() - sent_us;
        rd_kafka_message_destroy(m);
    }
    rd_kafka_consumer_close(client);
    rd_kafka_destroy(client);
    return NULL;
}

static int by_value(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void latencies_print(int64_t *us, long count, long errors, double cpu) {
    qsort(us, (size_t)count, sizeof *us, by_value);
    printf("n=%ld errors=%ld p50_us=%lld p95_us=%lld p99_us=%lld p999_us=%lld max_us=%lld cpu=%.2f\n", count,
           errors, (long long)us[count / 2], (long long)us[count * 95 / 100], (long long)us[count * 99 / 100],
           (long long)us[count * 999 / 1000], (long long)us[count - 1], cpu);
}

static int single(const struct load *l) {
    enum { WARM_UP = 200 };
    struct delivered d = {0};
    rd_kafka_t *client = producer_new(l, &d);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, l->topic, NULL);
    int64_t *us = calloc((size_t)l->count, sizeof *us), start = now_us();
    char *value = calloc(1, l->size_bytes);
    double cpu = 0;
    for (long i = -WARM_UP; i < l->count; i++) {
        if (i == 0)
            cpu = cpu_seconds();
        int64_t sent_us = now_us();
        send_one(client, topic, (int)((i + WARM_UP) % l->partitions), value, l->size_bytes, 0);
        while (d.ok + d.failed <= i + WARM_UP && now_us() - start < LIMIT_US)
            rd_kafka_poll(client, 100);
        if (i >= 0)
            us[i] = now_us() - sent_us;
    }
    latencies_print(us, l->count, d.failed, cpu_seconds() - cpu);
    return d.ok == l->count + WARM_UP ? 0 : 1;
}

static int latency(const struct load *l) {
    struct delivered d = {0};
    struct tail t = {
        .load = l, .count_max = l->count, .latency_us = calloc((size_t)l->count, sizeof(int64_t))};
    rd_kafka_t *client = producer_new(l, &d);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(client, l->topic, NULL);
    char *value = calloc(1, l->size_bytes);
    pthread_t thread;
    pthread_create(&thread, NULL, tail_run, &t);
    while (!atomic_load(&t.ready))
        usleep(1000);
    usleep(700000);
    for (int i = 0; i < 200; i++) { /* to warm up: a stamp of 0 is not counted */
        send_one(client, topic, i % l->partitions, value, l->size_bytes, RD_KAFKA_MSG_F_COPY);
        rd_kafka_poll(client, 0);
        usleep(1000);
    }
    rd_kafka_flush(client, 5000);

    double cpu = cpu_seconds();
    int64_t start = now_us();
    for (long i = 0; i < l->count; i++)
        send_stamped(client, topic, l, i, value, start + (int64_t)((double)i * 1e6 / l->rate));
    rd_kafka_flush(client, 10000);
    usleep(300000);
    atomic_store(&t.stop, true);
    pthread_join(thread, NULL);
    if (t.count == 0)
        die("no record came back");
    latencies_print(t.latency_us, t.count, d.failed, cpu_seconds() - cpu);
    return d.failed == 0 && t.count == l->count ? 0 : 1;
}

/* How many of the words at the end are settings. */
static int settings_find(int count, char **words) {
    int found = 0;
    while (count - found > 4 && strchr(words[count - found - 1], '='))
        found++;
    return found;
}

int main(int count, char **a) {
    int settings = settings_find(count, a);
    count -= settings;
    if (count < 4) {
        fprintf(stderr, "usage: kbench create|delete|produce|consume|latency|single BOOTSTRAP TOPIC ...\n");
        return 2;
    }
    struct load l = {.bootstrap = a[2],
                     .topic = a[3],
                     .codec = "none",
                     .acks = "all",
                     .settings = a + count,
                     .settings_count = settings,
                     .partitions = count > 4 ? atoi(a[4]) : 1};
    if (count > 5)
        l.count = atol(a[5]);
    if (count > 7) {
        l.size_bytes = (size_t)atol(a[6]);
        l.acks = a[7];
    }
    l.one_by_one = !strcmp(a[1], "latency") || !strcmp(a[1], "single");
    if (!strcmp(a[1], "create") || !strcmp(a[1], "delete"))
        return admin(&l, *a[1] == 'c');
    if (!strcmp(a[1], "consume") && count == 6)
        return consume(&l);
    if (!strcmp(a[1], "single") && count == 8)
        return single(&l);
    if (count != 9)
        return 2;
    if (!strcmp(a[1], "latency")) {
        l.rate = atof(a[8]);
        return latency(&l);
    }
    l.codec = a[8];
    return produce(&l);
}

/* librdkafka in C behind the driver protocol (../README.md): rdkafka BOOTSTRAP.
 * Only calls that librdkafka 2.0.2 has, so that the same program runs on an old and on a current one. */
#include <librdkafka/rdkafka.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TIMEOUT_MS  15000
#define HEADERS_MAX 16

struct blob {
    char *data; /* NULL is Kafka's null */
    size_t size;
};

struct record {
    int partition;
    long long timestamp; /* -1: librdkafka's choice */
    struct blob key, value;
    int headers_count;
    struct blob names[HEADERS_MAX], values[HEADERS_MAX];
    long long offset;
    rd_kafka_resp_err_t error;
    int done;
};

static const char *bootstrap;
static char *line;
static size_t line_size;

static void fail(rd_kafka_resp_err_t code, const char *text) {
    printf("err\t%d\t%s\n", code, text ? text : rd_kafka_err2str(code));
}

static char *read_line(void) {
    ssize_t n = getline(&line, &line_size, stdin);
    if (n <= 0)
        return NULL;
    if (line[n - 1] == '\n')
        line[n - 1] = 0;
    return line;
}

static int hex(char c) {
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static struct blob unpack(const char *text) {
    struct blob b = {NULL, 0};
    if (*text == '-')
        return b;
    b.size = strlen(text + 1) / 2;
    b.data = malloc(b.size + 1);
    for (size_t i = 0; i < b.size; i++)
        b.data[i] = (char)(hex(text[1 + 2 * i]) << 4 | hex(text[2 + 2 * i]));
    b.data[b.size] = 0;
    return b;
}

static void put(const void *data, size_t size) {
    if (!data) {
        putchar('-');
        return;
    }
    putchar('x');
    for (size_t i = 0; i < size; i++)
        printf("%02x", ((const unsigned char *)data)[i]);
}

/* settings: key, value, ... NULL */
static rd_kafka_t *client_new(rd_kafka_type_t type, void *opaque, ...) {
    char text[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", bootstrap, text, sizeof text);
    rd_kafka_conf_set(conf, "log_level", "0", text, sizeof text);
    va_list settings;
    va_start(settings, opaque);
    for (const char *key; (key = va_arg(settings, const char *));) {
        if (rd_kafka_conf_set(conf, key, va_arg(settings, const char *), text, sizeof text)) {
            fprintf(stderr, "%s\n", text);
            exit(1);
        }
    }
    va_end(settings);
    rd_kafka_conf_set_opaque(conf, opaque);
    rd_kafka_t *client = rd_kafka_new(type, conf, text, sizeof text);
    if (!client) {
        fprintf(stderr, "%s\n", text);
        exit(1);
    }
    return client;
}

/* The answer of CreateTopics, DeleteTopics and CreatePartitions for one topic. */
static void admin_answer(rd_kafka_t *client, rd_kafka_queue_t *queue) {
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, TIMEOUT_MS);
    size_t n = 0;
    const rd_kafka_topic_result_t **results = NULL;
    switch (event ? rd_kafka_event_type(event) : 0) {
    case RD_KAFKA_EVENT_CREATETOPICS_RESULT:
        results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &n);
        break;
    case RD_KAFKA_EVENT_DELETETOPICS_RESULT:
        results = rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &n);
        break;
    case RD_KAFKA_EVENT_CREATEPARTITIONS_RESULT:
        results = rd_kafka_CreatePartitions_result_topics(rd_kafka_event_CreatePartitions_result(event), &n);
        break;
    default:
        break;
    }
    if (!event)
        fail(RD_KAFKA_RESP_ERR__TIMED_OUT, NULL);
    else if (rd_kafka_event_error(event))
        fail(rd_kafka_event_error(event), rd_kafka_event_error_string(event));
    else if (n == 1 && !rd_kafka_topic_result_error(results[0]))
        puts("ok");
    else
        fail(n ? rd_kafka_topic_result_error(results[0]) : RD_KAFKA_RESP_ERR__FAIL, NULL);
    if (event)
        rd_kafka_event_destroy(event);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(client);
}

static void create(const char *topic, int partitions, int factor) {
    char text[256];
    rd_kafka_t *client = client_new(RD_KAFKA_PRODUCER, NULL, NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_NewTopic_t *new_topic = rd_kafka_NewTopic_new(topic, partitions, factor, text, sizeof text);
    if (!new_topic) { /* librdkafka itself refuses 0 partitions */
        printf("err\t37\t%s\n", text);
        rd_kafka_queue_destroy(queue);
        rd_kafka_destroy(client);
        return;
    }
    rd_kafka_CreateTopics(client, &new_topic, 1, NULL, queue);
    rd_kafka_NewTopic_destroy(new_topic);
    admin_answer(client, queue);
}

static void delete (const char *topic) {
    rd_kafka_t *client = client_new(RD_KAFKA_PRODUCER, NULL, NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_DeleteTopic_t *old = rd_kafka_DeleteTopic_new(topic);
    rd_kafka_DeleteTopics(client, &old, 1, NULL, queue);
    rd_kafka_DeleteTopic_destroy(old);
    admin_answer(client, queue);
}

static void grow(const char *topic, int partitions) {
    char text[256];
    rd_kafka_t *client = client_new(RD_KAFKA_PRODUCER, NULL, NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_NewPartitions_t *more = rd_kafka_NewPartitions_new(topic, (size_t)partitions, text, sizeof text);
    rd_kafka_CreatePartitions(client, &more, 1, NULL, queue);
    rd_kafka_NewPartitions_destroy(more);
    admin_answer(client, queue);
}

static void metadata(int want_topics) {
    rd_kafka_t *client = client_new(RD_KAFKA_PRODUCER, NULL, NULL);
    const struct rd_kafka_metadata *found;
    rd_kafka_resp_err_t error = rd_kafka_metadata(client, 1, NULL, &found, TIMEOUT_MS);
    if (error) {
        fail(error, NULL);
    } else {
        printf("ok");
        if (want_topics) {
            for (int i = 0; i < found->topic_cnt; i++)
                printf("\t%s=%d", found->topics[i].topic, found->topics[i].partition_cnt);
            putchar('\n');
        } else {
            int controller = rd_kafka_controllerid(client, TIMEOUT_MS), known = 0;
            for (int i = 0; i < found->broker_cnt; i++)
                known |= found->brokers[i].id == controller;
            printf("\t%d\t%s\n", found->broker_cnt, known ? "yes" : "no");
        }
        rd_kafka_metadata_destroy(found);
    }
    rd_kafka_destroy(client);
}

static void offset(const char *topic, int partition, const char *where) {
    rd_kafka_t *client = client_new(RD_KAFKA_CONSUMER, NULL, "group.id", "none", NULL);
    int64_t low, high, at = -1;
    rd_kafka_resp_err_t error;
    if (!strcmp(where, "earliest") || !strcmp(where, "latest")) {
        error = rd_kafka_query_watermark_offsets(client, topic, partition, &low, &high, TIMEOUT_MS);
        at = *where == 'e' ? low : high;
    } else {
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(list, topic, partition)->offset = atoll(where);
        error = rd_kafka_offsets_for_times(client, list, TIMEOUT_MS);
        if (!error)
            error = list->elems[0].err;
        at = list->elems[0].offset;
        rd_kafka_topic_partition_list_destroy(list);
    }
    if (error)
        fail(error, NULL);
    else if (at < 0)
        puts("ok\t-");
    else
        printf("ok\t%lld\n", (long long)at);
    rd_kafka_consumer_close(client);
    rd_kafka_destroy(client);
}

static void record_parse(struct record *r, char *text) {
    char *field[6];
    for (int i = 0; i < 6; i++)
        field[i] = strsep(&text, "\t");
    r->partition = atoi(field[0]);
    r->timestamp = *field[2] == '-' ? -1 : atoll(field[2]);
    r->key = unpack(field[3]);
    r->value = unpack(field[4]);
    if (*field[5] == '-')
        return;
    for (char *header; (header = strsep(&field[5], ",")) && r->headers_count < HEADERS_MAX;) {
        char *name = strsep(&header, "=");
        r->names[r->headers_count] = unpack(name);
        r->values[r->headers_count++] = unpack(header);
    }
}

static void on_delivery(rd_kafka_t *client, const rd_kafka_message_t *message, void *opaque) {
    (void)client, (void)opaque;
    struct record *r = message->_private;
    r->error = message->err;
    r->offset = message->offset;
    r->done = 1;
}

static rd_kafka_t *producer_new(const char *codec, const char *acks, int idempotent) {
    char text[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    const char *settings[][2] = {{"bootstrap.servers", bootstrap},
                                 {"log_level", "0"},
                                 {"compression.type", codec},
                                 {"acks", acks},
                                 {"linger.ms", "5"},
                                 {"message.timeout.ms", "15000"},
                                 {"enable.idempotence", idempotent ? "true" : "false"}};
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (rd_kafka_conf_set(conf, settings[i][0], settings[i][1], text, sizeof text))
            fprintf(stderr, "%s\n", text);
    }
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    return rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text);
}

static void produce(const char *topic_arg, const char *codec, const char *acks, int idempotent, int count) {
    char *topic = strdup(topic_arg);
    struct record *records = calloc((size_t)count, sizeof *records);
    int no_acks = *acks == '0';
    rd_kafka_t *client = producer_new(codec, acks, idempotent);
    for (int i = 0; i < count; i++)
        record_parse(&records[i], read_line());
    for (int i = 0; i < count; i++) {
        struct record *r = &records[i];
        rd_kafka_headers_t *headers = rd_kafka_headers_new(4);
        for (int h = 0; h < r->headers_count; h++) {
            rd_kafka_header_add(headers, r->names[h].data, (ssize_t)r->names[h].size, r->values[h].data,
                                (ssize_t)r->values[h].size);
        }
        r->error = rd_kafka_producev(
            client, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(r->partition),
            RD_KAFKA_V_KEY(r->key.data, r->key.size), RD_KAFKA_V_VALUE(r->value.data, r->value.size),
            RD_KAFKA_V_TIMESTAMP(r->timestamp < 0 ? 0 : r->timestamp), RD_KAFKA_V_HEADERS(headers),
            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_OPAQUE(r), RD_KAFKA_V_END);
        r->done = r->error != 0;
    }
    rd_kafka_resp_err_t error = rd_kafka_flush(client, TIMEOUT_MS);
    for (int i = 0; i < count && !error; i++)
        error = records[i].done ? records[i].error : RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (error) {
        fail(error, NULL);
    } else {
        printf("ok");
        for (int i = 0; i < count; i++)
            printf("\t%d:%lld", records[i].partition, no_acks ? -1 : records[i].offset);
        putchar('\n');
    }
    rd_kafka_destroy(client);
    free(records); /* a test driver: the blobs end with the process */
    free(topic);
}

static void message_print(const rd_kafka_message_t *m) {
    rd_kafka_headers_t *headers;
    printf("%d\t%lld\t%lld\t", m->partition, (long long)m->offset,
           (long long)rd_kafka_message_timestamp(m, NULL));
    put(m->key, m->key_len);
    putchar('\t');
    put(m->payload, m->len);
    putchar('\t');
    if (rd_kafka_message_headers(m, &headers) || !rd_kafka_header_cnt(headers)) {
        puts("-");
        return;
    }
    const char *name;
    const void *value;
    size_t size;
    for (size_t i = 0; !rd_kafka_header_get_all(headers, i, &name, &value, &size); i++) {
        if (i)
            putchar(',');
        put(name, strlen(name));
        putchar('=');
        put(value, size);
    }
    putchar('\n');
}

static void consume(const char *topic, int partition, long long from, int count) {
    rd_kafka_t *client = client_new(RD_KAFKA_CONSUMER, NULL, "group.id", "none", "auto.offset.reset", "error",
                                    "enable.auto.commit", "false", "fetch.wait.max.ms", "200", NULL);
    rd_kafka_poll_set_consumer(client);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, topic, partition)->offset = from;
    rd_kafka_assign(client, list);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_message_t **found = calloc((size_t)count, sizeof *found);
    rd_kafka_resp_err_t error = 0;
    int n = 0;
    for (time_t end = time(NULL) + 15; n < count && !error && time(NULL) < end;) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(client, 500);
        if (!m)
            continue;
        error = m->err;
        if (error)
            rd_kafka_message_destroy(m);
        else
            found[n++] = m;
    }
    if (error)
        fail(error, NULL);
    else
        printf("ok\t%d\n", n);
    for (int i = 0; i < n; i++) {
        if (!error)
            message_print(found[i]);
        rd_kafka_message_destroy(found[i]);
    }
    free(found);
    rd_kafka_consumer_close(client);
    rd_kafka_destroy(client);
}

int main(int count, char **arguments) {
    if (count != 2)
        return 2;
    bootstrap = arguments[1];
    for (char *text; (text = read_line());) {
        char *command = strdup(text), *rest = command, *a[8] = {0};
        for (int i = 0; i < 8 && rest; i++)
            a[i] = strsep(&rest, "\t");
        if (!strcmp(a[0], "hello")) {
            puts("ok\tcodec:none\tcodec:gzip\tcodec:snappy\tcodec:lz4\tcodec:"
                 "zstd\tidempotent\tacks0\ttime\theaders\tempty-header\tnull-header\t"
                 "repeat-header\tnull-key\tempty-key\ttombstone\tempty-"
                 "value\tconsume\tcreate\tdelete\tgrow\ttopics\tcluster\toffset\toffset-time");
        } else if (!strcmp(a[0], "create")) {
            create(a[1], atoi(a[2]), atoi(a[3]));
        } else if (!strcmp(a[0], "delete")) {
            delete (a[1]);
        } else if (!strcmp(a[0], "grow")) {
            grow(a[1], atoi(a[2]));
        } else if (!strcmp(a[0], "topics") || !strcmp(a[0], "cluster")) {
            metadata(*a[0] == 't');
        } else if (!strcmp(a[0], "produce")) {
            produce(a[1], a[2], a[3], *a[4] == 'y', atoi(a[5]));
        } else if (!strcmp(a[0], "consume")) {
            consume(a[1], atoi(a[2]), atoll(a[3]), atoi(a[4]));
        } else if (!strcmp(a[0], "offset")) {
            offset(a[1], atoi(a[2]), a[3]);
        }
        fflush(stdout);
        free(command);
    }
    return 0;
}

/* kbench: light librdkafka load generator.
 *  kbench prod BOOT TOPIC NMSGS SIZE ACKS COMP [PARTS]      producer throughput (linger 5 ms, batch 64 KiB, no idempotence)
 *  kbench cons BOOT TOPIC NMSGS [PARTS]                     consumer throughput (assign all partitions from the beginning, until NMSGS)
 *  kbench mk BOOT TOPIC PARTS | kbench rm BOOT TOPIC x       create / delete a topic
 *  kbench lat  BOOT TOPIC SECONDS RATE SIZE ACKS [PARTS]    end to end latency at a steady rate (linger 0, fetch.wait 500, min.bytes 1)
 * prints one line key=value: n, sec, msg_s, MB_s, client CPU seconds, latencies in us */
#include <librdkafka/rdkafka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
static int64_t us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}
static double cpu(void) {
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return r.ru_utime.tv_sec + r.ru_stime.tv_sec + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}
static void set(rd_kafka_conf_t *c, const char *k, const char *v) {
    char e[256];
    if (rd_kafka_conf_set(c, k, v, e, sizeof e)) {
        fprintf(stderr, "%s\n", e);
        exit(2);
    }
}
static long okc, errc;
static const char *firsterr;
static void dr(rd_kafka_t *rk, const rd_kafka_message_t *m, void *o) {
    (void)rk;
    (void)o;
    if (m->err) {
        if (!errc++)
            firsterr = rd_kafka_err2str(m->err);
    } else
        okc++;
}
static rd_kafka_t *mk(int type, rd_kafka_conf_t *c) {
    char e[256];
    rd_kafka_t *r = rd_kafka_new(type, c, e, sizeof e);
    if (!r) {
        fprintf(stderr, "%s\n", e);
        exit(2);
    }
    return r;
}
static unsigned rs = 12345;
static unsigned rnd(void) {
    rs = rs * 1103515245u + 12345;
    return rs >> 16;
}
/* payloads that compress to about a half: words of a small vocabulary mixed with random hex */
static void fill(char *b, int n) {
    static const char *w[] = {"\"user\":", "\"event\":\"click\",", "\"ts\":17000",
                              "session=",  "GET /index.html ",     "status=200 "};
    int i = 0;
    while (i < n) {
        const char *s = w[rnd() % 6];
        for (; *s && i < n; s++)
            b[i++] = *s;
        for (int k = 0; k < 10 && i < n; k++)
            b[i++] = "0123456789abcdef"[rnd() & 15];
    }
}
static int cmp(const void *a, const void *b) {
    int64_t x = *(int64_t *)a, y = *(int64_t *)b;
    return x < y ? -1 : x > y;
}
static volatile int stop;
static int64_t *lat;
static long nlat;
static long caplat;
static atomic_int ready;
static const char *B, *T;
static int parts = 1;
static rd_kafka_t *consumer(int from_end) {
    rd_kafka_conf_t *c = rd_kafka_conf_new();
    set(c, "bootstrap.servers", B);
    char g[64];
    snprintf(g, 64, "kb-%d-%ld", getpid(), (long)us());
    set(c, "group.id", g);
    set(c, "enable.auto.commit", "false");
    set(c, "auto.offset.reset", "earliest");
    set(c, "fetch.min.bytes", "1");
    if (!from_end) {
        set(c, "queued.max.messages.kbytes", "131072");
        set(c, "fetch.message.max.bytes", "1048576");
        set(c, "queued.min.messages", "1000000");
    }
    rd_kafka_t *r = mk(RD_KAFKA_CONSUMER, c);
    rd_kafka_poll_set_consumer(r);
    rd_kafka_topic_partition_list_t *l = rd_kafka_topic_partition_list_new(parts);
    for (int i = 0; i < parts; i++) {
        int64_t lo = 0, hi = 0;
        if (from_end)
            rd_kafka_query_watermark_offsets(r, T, i, &lo, &hi, 10000);
        rd_kafka_topic_partition_list_add(l, T, i)->offset = from_end ? hi : 0;
    }
    rd_kafka_assign(r, l);
    rd_kafka_topic_partition_list_destroy(l);
    return r;
}
static void *latc(void *a) {
    (void)a;
    rd_kafka_t *r = consumer(1);
    atomic_store(&ready, 1);
    while (!stop) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(r, 100);
        if (!m)
            continue;
        if (!m->err && m->len >= 8) {
            int64_t t;
            memcpy(&t, m->payload, 8);
            if (t > 0 && nlat < caplat)
                lat[nlat++] = us() - t;
        }
        rd_kafka_message_destroy(m);
    }
    rd_kafka_consumer_close(r);
    rd_kafka_destroy(r);
    return NULL;
}
int main(int c, char **v) {
    if (c < 5)
        return 2;
    B = v[2];
    T = v[3];
    if (!strcmp(v[1], "mk") || !strcmp(v[1], "rm")) {
        rd_kafka_conf_t *k = rd_kafka_conf_new();
        set(k, "bootstrap.servers", B);
        rd_kafka_t *p = mk(RD_KAFKA_PRODUCER, k);
        rd_kafka_queue_t *q = rd_kafka_queue_new(p);
        char e[256];
        if (v[1][0] == 'm') {
            rd_kafka_NewTopic_t *nt = rd_kafka_NewTopic_new(T, atoi(v[4]), 1, e, sizeof e);
            rd_kafka_CreateTopics(p, &nt, 1, NULL, q);
        } else {
            rd_kafka_DeleteTopic_t *d = rd_kafka_DeleteTopic_new(T);
            rd_kafka_DeleteTopics(p, &d, 1, NULL, q);
        }
        rd_kafka_event_t *ev = rd_kafka_queue_poll(q, 15000);
        if (!ev || rd_kafka_event_error(ev)) {
            fprintf(stderr, "admin: %s\n", ev ? rd_kafka_event_error_string(ev) : "timeout");
            return 1;
        }
        usleep(300000);
        return 0;
    }
    if (!strcmp(v[1], "prod") || !strcmp(v[1], "lat")) {
        int isl = v[1][0] == 'l';
        long n;
        int size;
        const char *acks, *comp = "none";
        double rate = 0;
        if (isl) {
            double sec = atof(v[4]);
            rate = atof(v[5]);
            n = (long)(sec * rate);
            size = atoi(v[6]);
            acks = v[7];
            if (c > 8)
                parts = atoi(v[8]);
        } else {
            n = atol(v[4]);
            size = atoi(v[5]);
            acks = v[6];
            comp = v[7];
            if (c > 8)
                parts = atoi(v[8]);
        }
        rd_kafka_conf_t *k = rd_kafka_conf_new();
        set(k, "bootstrap.servers", B);
        set(k, "linger.ms", isl ? "0" : "5");
        set(k, "batch.size", "65536");
        set(k, "compression.type", comp);
        set(k, "acks", acks);
        set(k, "queue.buffering.max.messages", "1000000");
        set(k, "queue.buffering.max.kbytes", "262144");
        rd_kafka_conf_set_dr_msg_cb(k, dr);
        rd_kafka_t *p = mk(RD_KAFKA_PRODUCER, k);
        rd_kafka_topic_t *t = rd_kafka_topic_new(p, T, NULL);
        const struct rd_kafka_metadata *md;
        rd_kafka_metadata(p, 0, t, &md, 10000);
        enum { NB = 256 };
        char *buf = malloc((size_t)size * NB);
        fill(buf, size * NB);
        pthread_t th;
        char *one = malloc(size);
        if (isl) {
            caplat = n + 1000;
            lat = malloc(sizeof *lat * caplat);
            pthread_create(&th, NULL, latc, NULL);
            while (!atomic_load(&ready))
                usleep(1000);
            usleep(700000); /* warm up */
            for (int i = 0; i < 200; i++) {
                memset(one, 0, size);
                rd_kafka_produce(t, i % parts, RD_KAFKA_MSG_F_COPY, one, size, NULL, 0, NULL);
                rd_kafka_poll(p, 0);
                usleep(1000);
            }
            rd_kafka_flush(p, 5000);
            okc = errc = 0;
        }
        double c0 = cpu();
        int64_t t0 = us();
        for (long i = 0; i < n; i++) {
            char *pl = buf + (size_t)(i % NB) * size;
            int fl = 0;
            if (isl) {
                int64_t due = t0 + (int64_t)(i * 1e6 / rate);
                int64_t w;
                while ((w = due - us()) > 0) {
                    if (w > 60)
                        usleep(w - 50);
                }
                memcpy(one, pl, size);
                int64_t now = us();
                memcpy(one, &now, 8);
                pl = one;
                fl = RD_KAFKA_MSG_F_COPY;
            }
            while (rd_kafka_produce(t, i % parts, fl, pl, size, NULL, 0, NULL) == -1) {
                if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
                    fprintf(stderr, "%s\n", rd_kafka_err2str(rd_kafka_last_error()));
                    return 1;
                }
                rd_kafka_poll(p, 10);
            }
            if (isl || (i & 63) == 0)
                rd_kafka_poll(p, 0);
        }
        while (okc + errc < n && us() - t0 < 300000000LL)
            rd_kafka_poll(p, 100);
        int64_t t1 = us();
        double c1 = cpu(), s = (t1 - t0) / 1e6;
        if (isl) {
            usleep(300000);
            stop = 1;
            pthread_join(th, NULL);
            qsort(lat, nlat, sizeof *lat, cmp);
            if (!nlat) {
                printf("mode=lat n=0\n");
                return 1;
            }
            double m = 0;
            for (long i = 0; i < nlat; i++)
                m += lat[i];
            printf("mode=lat n=%ld sent=%ld err=%ld p50_us=%ld p95_us=%ld p99_us=%ld p999_us=%ld max_us=%ld "
                   "mean_us=%.0f cpu=%.2f\n",
                   nlat, okc, errc, (long)lat[nlat / 2], (long)lat[nlat * 95 / 100],
                   (long)lat[nlat * 99 / 100], (long)lat[nlat * 999 / 1000], (long)lat[nlat - 1], m / nlat,
                   c1 - c0);
        } else
            printf("mode=prod n=%ld err=%ld%s%s sec=%.3f msg_s=%.0f MB_s=%.1f cpu=%.2f\n", okc, errc,
                   errc ? " first=" : "", errc ? firsterr : "", s, okc / s, okc / s * size / 1e6, c1 - c0);
        return errc ? 1 : 0;
    }
    long n = atol(v[4]), g = 0;
    int64_t bytes = 0;
    if (c > 5)
        parts = atoi(v[5]);
    double c0 = cpu();
    rd_kafka_t *r = consumer(0);
    rd_kafka_queue_t *q = rd_kafka_queue_get_consumer(r);
    static rd_kafka_message_t *ms[2000];
    int64_t t0 = 0, ts = us(), t1 = ts;
    while (g < n && us() - ts < 120000000LL) {
        ssize_t k = rd_kafka_consume_batch_queue(q, 200, ms, 2000);
        for (ssize_t i = 0; i < k; i++) {
            if (!ms[i]->err) {
                if (!t0)
                    t0 = us();
                g++;
                bytes += ms[i]->len;
            } else
                fprintf(stderr, "%s\n", rd_kafka_message_errstr(ms[i]));
            rd_kafka_message_destroy(ms[i]);
        }
        t1 = us();
    }
    double s = (t1 - ts) / 1e6;
    printf("mode=cons n=%ld sec=%.3f msg_s=%.0f MB_s=%.1f cpu=%.2f first_ms=%.0f\n", g, s, g / s,
           bytes / s / 1e6, cpu() - c0, t0 ? (t0 - ts) / 1e3 : -1.0);
    return g >= n ? 0 : 1;
}

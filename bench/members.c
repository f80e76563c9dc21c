/*
 * Members of many consumer groups that do nothing but be there: each has a connection of its own, joins its group for real, and heartbeats. For
 * measuring how long a heartbeat takes, and what members cost (./run --members drives it, and tests/members).
 *
 *   members HOST:PORT PROTOCOL GROUPS MEMBERS INTERVAL_MS TOPIC
 *
 * PROTOCOL is classic or consumer; MEMBERS are those of one group. With consumer, TOPIC must have MEMBERS partitions: each member has one in
 * the end. When all members of all groups are there one line begins with "ready". From then on each line on stdin is answered by one about the
 * time since the last: heartbeats, their latencies in microseconds from the call that sends it to the answer, and what must not be: errors,
 * rebalances (members that had to join again, or got another epoch), lost connections. At the end of stdin the members leave.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#include "base/be.h"
#include "base/clock.h"
#include "base/mem.h"
#include "wire/codec.h"
#include "wire/kerr.h"

#define CONNECTING_MAX  256 /* at once: below a listener's backlog */
#define JOINING_BEAT_MS 1000
#define JOINED_MAX_MS   60000
#define SETTLED_MS      1500  /* for so long no epoch of a consumer group has changed when all are there */
#define SESSION_MS      45000 /* as Java's */
#define REBALANCE_MS    300000
#define CLIENT_ID       "members"
#define PARTS_MAX       64
#define FRAME_BYTES_MAX (1 << 20)

enum api {
    JOIN_GROUP = 11,
    HEARTBEAT = 12,
    LEAVE_GROUP = 13,
    SYNC_GROUP = 14,
    CONSUMER_HEARTBEAT = 68,
};

/* What is asked for is flexible: answers have a header of version 1. */
static int16_t version_of(enum api api) {
    return api == JOIN_GROUP ? 9 : api == HEARTBEAT ? 4 : api == CONSUMER_HEARTBEAT ? 1 : 5;
}

enum step {
    OUT,     /* not connected */
    JOINING, /* it waits for its generation, and its assignment */
    BEATING,
    LEAVING,
    GONE,
};

struct member {
    uv_tcp_t tcp;
    enum step step;
    enum api asked;
    bool waits;      /* for an answer */
    int64_t sent_us; /* when it asked */
    int32_t number, generation;
    char id[96];
    struct uuid topic; /* consumer: what it has */
    int32_t parts[PARTS_MAX], parts_count;
    bool tells_parts; /* with its next heartbeat */
    uint8_t *in;      /* owned; an answer that has come in part */
    uint32_t in_bytes, in_room;
};

static struct {
    struct sockaddr_in address;
    struct str topic;
    bool consumer;
    int32_t groups, per_group, count;
    int32_t interval_ms;
    struct member *members;
    uv_loop_t *loop;
    uv_timer_t tick;
    uv_poll_t input;
    int32_t next_connect, connecting, gone;
    int32_t next_beat; /* members beat in turn: each has its own place in the interval */
    int64_t next_beat_us, began_us, changed_us;
    int32_t settled;
    bool ready, leaving;
    double cpu; /* at the beginning of the window */
    int32_t *us;
    size_t us_count, us_room;
    int64_t errors, rebalances, lost, late;
} run;

static void die(const char *text) {
    fprintf(stderr, "members: %s\n", text);
    exit(1);
}

static void must(enum status st) {
    if (st)
        die(status_text(st));
}

static double cpu_seconds(void) {
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static struct str group_of(const struct member *m, char room[32]) {
    int len = snprintf(room, 32, "members-%d", m->number / run.per_group);
    return (struct str){room, len};
}

static struct str id_of(const struct member *m) {
    return (struct str){m->id, (int32_t)strlen(m->id)};
}

/* ---- what is sent ---- */

static void on_closed(uv_handle_t *handle) {
    (void)handle;
    if (run.leaving && ++run.gone == run.count)
        uv_stop(run.loop);
}

static void member_close(struct member *m) {
    if (m->step == GONE)
        return;
    run.settled -= m->step == BEATING;
    run.lost += !run.leaving;
    m->step = GONE;
    uv_close((uv_handle_t *)&m->tcp, on_closed);
}

static void ask(struct member *m, enum api api, const void *body) {
    static uint8_t flat[FRAME_BYTES_MAX];
    struct wbuf out;
    wbuf_init(&out, sizeof flat);
    uint8_t *length = wbuf_reserve(&out, 4);
    must(wbuf_put_be(&out, (uint64_t)api, 2));
    must(wbuf_put_be(&out, (uint64_t)version_of(api), 2));
    must(wbuf_put_be(&out, (uint64_t)m->number, 4));
    must(wbuf_put_be(&out, sizeof CLIENT_ID - 1, 2));
    must(wbuf_put(&out, CLIENT_ID "", sizeof CLIENT_ID)); /* its terminator stands for no tags */
    must(kmsg_encode(kmsg_request((int16_t)api), version_of(api), body, &out));
    be_set(length, 4, out.bytes - 4);
    wbuf_flatten(&out, flat);
    uv_buf_t buf = uv_buf_init((char *)flat, (unsigned)out.bytes);
    wbuf_release(&out);

    m->asked = api;
    m->waits = true;
    m->sent_us = clock_us();
    if (uv_try_write((uv_stream_t *)&m->tcp, &buf, 1) != (int)buf.len)
        member_close(m);
}

static void member_step(struct member *m, enum step step) {
    run.settled += (step == BEATING) - (m->step == BEATING);
    m->step = step;
}

static void join(struct member *m) {
    char room[32];
    struct join_group_req in;
    uint8_t metadata[64];
    struct join_group_req_protocol protocol = {STR("range"), {metadata, 0}};
    be_set(metadata, 2, 0); /* a subscription of version 0: one topic, no user data */
    be_set(metadata + 2, 4, 1);
    be_set(metadata + 6, 2, (uint64_t)run.topic.len);
    memcpy(metadata + 8, run.topic.ptr, (size_t)run.topic.len);
    be_set(metadata + 8 + run.topic.len, 4, UINT32_MAX);
    protocol.metadata.len = 12 + run.topic.len;
    kmsg_init(join_group_req_schema(), &in);
    in.group_id = group_of(m, room);
    in.session_timeout_ms = SESSION_MS;
    in.rebalance_timeout_ms = REBALANCE_MS;
    in.member_id = id_of(m);
    in.protocol_type = STR("consumer");
    in.protocols = &protocol;
    in.protocols_count = 1;
    member_step(m, JOINING);
    ask(m, JOIN_GROUP, &in);
}

/* The leader's has an assignment for each member; what is in it is nobody's business here. */
static void sync_with(struct member *m, const struct join_group_res *joined) {
    char room[32];
    struct sync_group_req in;
    struct sync_group_req_assignment assignments[1000];
    kmsg_init(sync_group_req_schema(), &in);
    in.group_id = group_of(m, room);
    in.generation_id = m->generation;
    in.member_id = id_of(m);
    in.protocol_type = STR("consumer");
    in.protocol_name = STR("range");
    in.assignments = assignments;
    for (int32_t i = 0; i < joined->members_count && i < (int32_t)COUNT_OF(assignments); i++)
        assignments[in.assignments_count++] = (struct sync_group_req_assignment){
            joined->members[i].member_id, {(const uint8_t *)"assigned", 8}};
    ask(m, SYNC_GROUP, &in);
}

static void consumer_beat(struct member *m, int32_t epoch) {
    char room[32];
    struct consumer_group_heartbeat_req in;
    struct consumer_group_heartbeat_req_topic owned = {m->topic, {m->parts, m->parts_count}};
    struct str topics[] = {run.topic};
    kmsg_init(consumer_group_heartbeat_req_schema(), &in);
    in.group_id = group_of(m, room);
    in.member_id = id_of(m);
    in.member_epoch = epoch;
    if (epoch == 0) {
        in.rebalance_timeout_ms = REBALANCE_MS;
        in.subscribed_topic_names = (struct strs){topics, 1};
    }
    if (epoch == 0 || m->tells_parts) {
        in.topic_partitions = &owned;
        in.topic_partitions_count = epoch > 0 && m->parts_count > 0;
    }
    m->tells_parts = false;
    ask(m, CONSUMER_HEARTBEAT, &in);
}

static void beat(struct member *m) {
    char room[32];
    struct heartbeat_req in;
    if (run.consumer) {
        consumer_beat(m, m->generation);
        return;
    }
    kmsg_init(heartbeat_req_schema(), &in);
    in.group_id = group_of(m, room);
    in.generation_id = m->generation;
    in.member_id = id_of(m);
    ask(m, HEARTBEAT, &in);
}

static void leave(struct member *m) {
    char room[32];
    struct leave_group_req in;
    struct leave_group_req_member one;
    member_step(m, LEAVING);
    if (run.consumer) {
        consumer_beat(m, -1);
        return;
    }
    kmsg_init(leave_group_req_schema(), &in);
    kmsg_init(leave_group_req_member_schema(), &one);
    one.member_id = id_of(m);
    in.group_id = group_of(m, room);
    in.members = &one;
    in.members_count = 1;
    ask(m, LEAVE_GROUP, &in);
}

/* ---- what is answered ---- */

static void count_latency(const struct member *m) {
    if (!run.ready || run.leaving)
        return;
    if (run.us_count == run.us_room) {
        run.us_room = run.us_room * 2 + 65536;
        run.us = mem_grow(run.us, run.us_room * sizeof *run.us);
        if (!run.us)
            die("no memory");
    }
    run.us[run.us_count++] = (int32_t)(clock_us() - m->sent_us);
}

static void set_id(struct member *m, struct str id) {
    snprintf(m->id, sizeof m->id, "%.*s", id.len > 0 ? (int)id.len : 0, id.ptr ? id.ptr : "");
}

static void on_join(struct member *m, const struct join_group_res *out) {
    if (out->error_code == KERR_MEMBER_ID_REQUIRED || out->error_code == KERR_UNKNOWN_MEMBER_ID) {
        set_id(m, out->error_code == KERR_MEMBER_ID_REQUIRED ? out->member_id : STR(""));
        join(m);
        return;
    }
    if (out->error_code) {
        run.errors++;
        join(m);
        return;
    }
    set_id(m, out->member_id);
    m->generation = out->generation_id;
    sync_with(m, out);
}

static void on_sync(struct member *m, const struct sync_group_res *out) {
    if (out->error_code)
        join(m);
    else
        member_step(m, BEATING);
}

static void on_beat(struct member *m, const struct heartbeat_res *out) {
    count_latency(m);
    if (!out->error_code)
        return;
    run.errors += out->error_code != KERR_REBALANCE_IN_PROGRESS;
    run.rebalances++;
    join(m);
}

static void take_parts(struct member *m, const struct consumer_group_heartbeat_res_assignment *assignment) {
    m->parts_count = 0;
    m->tells_parts = true;
    if (assignment->topic_partitions_count == 0)
        return;
    const struct int32s *parts = &assignment->topic_partitions[0].partitions;
    m->topic = assignment->topic_partitions[0].topic_id;
    for (; m->parts_count < parts->count && m->parts_count < PARTS_MAX; m->parts_count++)
        m->parts[m->parts_count] = parts->items[m->parts_count];
}

static void on_consumer_beat(struct member *m, const struct consumer_group_heartbeat_res *out) {
    count_latency(m);
    if (out->error_code) {
        run.errors++;
        run.rebalances++;
        member_step(m, JOINING);
        m->generation = m->parts_count = 0;
        return;
    }
    if (out->member_epoch != m->generation) {
        run.rebalances++;
        run.changed_us = clock_us();
    }
    m->generation = out->member_epoch;
    if (out->assignment)
        take_parts(m, out->assignment);
    member_step(m, m->parts_count == 1 && !m->tells_parts ? BEATING : JOINING);
}

static void on_answer(struct member *m, struct rbuf in) {
    static const struct decode_limits limits = {100000, 32767};
    static _Alignas(16) uint8_t room[65536];
    union {
        struct join_group_res join;
        struct sync_group_res sync;
        struct heartbeat_res beat;
        struct leave_group_res leave;
        struct consumer_group_heartbeat_res consumer;
    } out;
    struct arena arena;
    uint64_t number = 0, tags = 1;
    must(rbuf_be(&in, 4, &number));
    must(rbuf_be(&in, 1, &tags));
    if (number != (uint64_t)m->number || tags != 0 || !m->waits)
        die("an answer that nobody asked for");
    arena_init(&arena, room, sizeof room, FRAME_BYTES_MAX);
    must(kmsg_decode(kmsg_response((int16_t)m->asked), version_of(m->asked), &limits, &in, &arena, &out));
    m->waits = false;
    if (m->step == LEAVING)
        member_close(m);
    else if (run.leaving)
        leave(m);
    else if (m->asked == JOIN_GROUP)
        on_join(m, &out.join);
    else if (m->asked == SYNC_GROUP)
        on_sync(m, &out.sync);
    else if (m->asked == HEARTBEAT)
        on_beat(m, &out.beat);
    else
        on_consumer_beat(m, &out.consumer);
    arena_release(&arena);
}

/* ---- connections ---- */

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *out) {
    struct member *m = container_of((uv_tcp_t *)handle, struct member, tcp);
    (void)wanted;
    if (m->in_room - m->in_bytes < 512) {
        m->in_room = m->in_room * 2 + 1024;
        m->in = mem_grow(m->in, m->in_room);
        if (!m->in)
            die("no memory");
    }
    *out = uv_buf_init((char *)m->in + m->in_bytes, m->in_room - m->in_bytes);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf) {
    struct member *m = container_of((uv_tcp_t *)stream, struct member, tcp);
    (void)buf;
    if (got < 0) {
        member_close(m);
        return;
    }
    m->in_bytes += (uint32_t)got;
    while (m->in_bytes >= 4) {
        uint32_t frame = 4 + (uint32_t)be_get(m->in, 4);
        if (m->in_bytes < frame)
            break;
        on_answer(m, (struct rbuf){m->in + 4, m->in + frame});
        m->in_bytes -= frame;
        memmove(m->in, m->in + frame, m->in_bytes);
    }
}

static void connect_more(void);

static void on_connect(uv_connect_t *connect, int failed) {
    struct member *m = container_of((uv_tcp_t *)connect->handle, struct member, tcp);
    run.connecting--;
    mem_free(connect);
    if (failed)
        die(uv_strerror(failed));
    uv_tcp_nodelay(&m->tcp, 1);
    uv_read_start((uv_stream_t *)&m->tcp, on_room, on_read);
    if (run.consumer) {
        snprintf(m->id, sizeof m->id, "members-%d-%d", (int)getpid(), m->number);
        m->step = JOINING;
        consumer_beat(m, 0);
    } else {
        join(m);
    }
    connect_more();
}

static void connect_more(void) {
    while (run.connecting < CONNECTING_MAX && run.next_connect < run.count) {
        struct member *m = &run.members[run.next_connect++];
        uv_connect_t *connect = mem_take_zeroed(1, sizeof *connect);
        if (!connect || uv_tcp_init(run.loop, &m->tcp) ||
            uv_tcp_connect(connect, &m->tcp, (const struct sockaddr *)&run.address, on_connect))
            die("can't connect");
        run.connecting++;
    }
}

/* ---- time ---- */

static int by_value(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

static int32_t part_of(double share) {
    return run.us_count ? run.us[(size_t)((double)(run.us_count - 1) * share)] : 0;
}

static void window_begin(void) {
    run.us_count = 0;
    run.errors = run.rebalances = run.lost = run.late = 0;
    run.cpu = cpu_seconds();
}

static void window_print(void) {
    qsort(run.us, run.us_count, sizeof *run.us, by_value);
    printf("heartbeats=%zu p50_us=%d p95_us=%d p99_us=%d p999_us=%d max_us=%d late=%lld errors=%lld "
           "rebalances=%lld lost=%lld "
           "cpu=%.2f\n",
           run.us_count, part_of(0.5), part_of(0.95), part_of(0.99), part_of(0.999), part_of(1),
           (long long)run.late, (long long)run.errors, (long long)run.rebalances, (long long)run.lost,
           cpu_seconds() - run.cpu);
    fflush(stdout);
    window_begin();
}

/* Whose turn it is. Who waits for an answer is passed over: late, when it is there to beat. */
static void beat_due(int64_t now_us) {
    int64_t interval_us = (run.ready || !run.consumer ? run.interval_ms : JOINING_BEAT_MS) * (int64_t)1000;
    for (; run.next_beat_us <= now_us && !run.leaving; run.next_beat_us += interval_us / run.count) {
        struct member *m = &run.members[run.next_beat];
        run.next_beat = (run.next_beat + 1) % run.count;
        run.late += m->waits && m->step == BEATING;
        if (!m->waits && (m->step == BEATING || (run.consumer && m->step == JOINING)))
            beat(m);
    }
}

static void on_tick(uv_timer_t *tick) {
    (void)tick;
    int64_t now_us = clock_us();
    beat_due(now_us);
    if (run.ready)
        return;
    if (now_us - run.began_us > JOINED_MAX_MS * (int64_t)1000) {
        fprintf(stderr, "members: %d of %d are there, %lld errors, %lld lost\n", run.settled, run.count,
                (long long)run.errors, (long long)run.lost);
        exit(1);
    }
    if (run.settled < run.count || (run.consumer && now_us - run.changed_us < SETTLED_MS * (int64_t)1000))
        return;
    printf("ready members=%d join_s=%.2f rebalances=%lld errors=%lld lost=%lld\n", run.count,
           (double)(now_us - run.began_us) / 1e6, (long long)run.rebalances, (long long)run.errors,
           (long long)run.lost);
    fflush(stdout);
    run.ready = true;
    window_begin();
}

static void on_input(uv_poll_t *poll, int failed, int events) {
    char line[256];
    (void)events;
    ssize_t got = failed ? 0 : read(STDIN_FILENO, line, sizeof line);
    for (ssize_t i = 0; i < got; i++)
        if (line[i] == '\n')
            window_print();
    if (got > 0)
        return;
    uv_poll_stop(poll);
    run.leaving = true;
    for (int32_t i = 0; i < run.count; i++)
        if (run.members[i].step == GONE || run.members[i].step == OUT)
            run.gone++;
        else if (!run.members[i].waits)
            leave(&run.members[i]);
    if (run.gone == run.count)
        uv_stop(run.loop);
}

static void files_allow(int32_t count) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    limit.rlim_cur = limit.rlim_max;
    if (limit.rlim_max < (rlim_t)count + 64 || setrlimit(RLIMIT_NOFILE, &limit))
        die("more files are needed than a process may open (ulimit -n)");
}

int main(int count, char **a) {
    char host[64];
    const char *colon = count == 7 ? strrchr(a[1], ':') : NULL;
    if (!colon || colon - a[1] >= (ptrdiff_t)sizeof host || strlen(a[6]) > 32) {
        fprintf(stderr, "usage: members IP:PORT classic|consumer GROUPS MEMBERS INTERVAL_MS TOPIC\n");
        return 2;
    }
    snprintf(host, sizeof host, "%.*s", (int)(colon - a[1]), a[1]);
    run.consumer = !strcmp(a[2], "consumer");
    run.groups = atoi(a[3]);
    run.per_group = atoi(a[4]);
    run.interval_ms = atoi(a[5]);
    run.topic = str_of(a[6]);
    run.count = run.groups * run.per_group;
    run.loop = uv_default_loop();
    if (run.count <= 0 || run.interval_ms <= 0 || uv_ip4_addr(host, atoi(colon + 1), &run.address))
        die("these arguments can't be");
    files_allow(run.count);
    run.members = mem_take_zeroed((size_t)run.count, sizeof *run.members);
    if (!run.members)
        die("no memory");
    for (int32_t i = 0; i < run.count; i++)
        run.members[i].number = i;
    run.began_us = run.next_beat_us = clock_us();
    uv_timer_init(run.loop, &run.tick);
    uv_timer_start(&run.tick, on_tick, 1, 1);
    if (uv_poll_init(run.loop, &run.input, STDIN_FILENO) || uv_poll_start(&run.input, UV_READABLE, on_input))
        die("stdin must be a pipe or a terminal");
    connect_more();
    uv_run(run.loop, UV_RUN_DEFAULT);
    return 0;
}

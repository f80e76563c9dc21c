#include "backend/iggy/fake_log_test.h"

#include <sys/socket.h>

#include "base/clock.h"
#include "base/mem.h"
#include "iggy/codec.h"
#include "iggy/cut.h"
#include "iggy/errors.h"
#include "testing/test.h"

#define ANSWER_MAX ((size_t)1 << 28)
#define US_PER_MS  1000
#define NO_TIME    UINT64_MAX

/* ---- what is kept ---- */

void fake_store(struct fake_server *f, struct fake_topic *t, uint32_t partition,
                const struct iggy_batch *batch) {
    struct iggy_batch b = *batch;
    uint8_t *bytes = fake_take((size_t)b.size_bytes);
    b.base_offset = t->next_offset[partition];
    b.partition_id = partition;
    b.base_timestamp_us = f->now_us;
    memcpy(bytes + IGGY_BATCH_HEADER_BYTES, b.frames.ptr, (size_t)b.frames.len);
    b.frames.ptr = bytes + IGGY_BATCH_HEADER_BYTES;
    iggy_batch_write_header(bytes, &b);
    t->next_offset[partition] += b.messages_count;
    CHECK(f->stored_count < FAKE_STORED_MAX);
    f->stored[f->stored_count++] = (struct fake_stored){.topic = t->id,
                                                        .partition = partition,
                                                        .end = t->next_offset[partition],
                                                        .bytes = bytes,
                                                        .len = b.size_bytes};
}

/* Messages of a partition from cut->offset on, of batches that came at from_us or later. ST_NO_MEMORY: begin anew. */
static enum status log_read(struct fake_server *f, const struct fake_topic *t, uint32_t partition,
                            uint64_t from_us, struct iggy_cut *cut, struct wbuf *out) {
    if (cut->offset < t->start[partition])
        cut->offset = t->start[partition];
    if (t->mute[partition])
        return ST_OK;
    for (int i = 0; i < f->stored_count && !cut->full; i++) {
        const struct fake_stored *s = &f->stored[i];
        struct bytes bytes = {s->bytes, s->len};
        struct iggy_batch b;
        if (s->topic != t->id || s->partition != partition || s->end <= cut->offset)
            continue;
        CHECK_EQ(iggy_batch_read(bytes, true, &b), ST_OK);
        if (from_us != NO_TIME && b.base_timestamp_us < from_us)
            continue;
        enum status st = iggy_cut_add(cut, bytes, out);
        if (st == ST_NO_MEMORY)
            return st;
        CHECK_EQ(st, ST_OK);
    }
    return ST_OK;
}

static uint64_t last_offset(const struct fake_topic *t, uint32_t partition) {
    return t->next_offset[partition] ? t->next_offset[partition] - 1 : 0;
}

/* ---- polls ---- */

void fake_on_poll(struct fake_call *c) {
    const struct iggy_poll_messages_req *in = fake_decoded(c);
    struct fake_server *f = c->f;
    struct fake_topic *t = fake_topic_of(f, in->stream.name, in->topic.name);
    uint32_t partition = in->partition.id;
    if (!t || partition >= t->partitions_count || t->code[partition]) {
        fake_answer(c,
                    !t                                 ? IGGY_ERR_TOPIC_ID_NOT_FOUND
                    : partition >= t->partitions_count ? IGGY_ERR_PARTITION_NOT_FOUND
                                                       : t->code[partition],
                    NULL);
        return;
    }
    if (f->poll_count_max && in->count > f->poll_count_max) {
        fake_hang_up(f, c->conn);
        return;
    }
    uint64_t from_us = in->strategy.kind == IGGY_FROM_TIMESTAMP ? in->strategy.value : NO_TIME;
    struct iggy_cut cut = {.offset = in->strategy.kind == IGGY_FROM_OFFSET ? in->strategy.value : 0,
                           .count_max = in->count,
                           .bytes_max = INT64_MAX,
                           .no_producer = f->version < IGGY_0_12_0};
    struct wbuf out;
    wbuf_init(&out, ANSWER_MAX);
    if (log_read(f, t, partition, from_us, &cut, &out)) {
        wbuf_release(&out);
        fake_on_poll(c);
        return;
    }
    uint8_t *flat = fake_take(out.bytes + 1);
    wbuf_flatten(&out, flat);
    struct iggy_poll_messages_res res = {.partition_id = partition,
                                         .current_offset = last_offset(t, partition),
                                         .messages_count = cut.count,
                                         .context = {.incarnation = t->incarnation},
                                         .batches = {flat, (int32_t)out.bytes}};
    fake_answer(c, 0, &res);
    wbuf_release(&out);
    mem_free(flat);
}

/* ---- fetches ---- */

static uint32_t section_code(const struct fake_topic *t, const struct iggy_fetch_partition *p) {
    if (p->partition_id >= t->partitions_count)
        return IGGY_ERR_PARTITION_NOT_FOUND;
    if (p->incarnation != t->incarnation)
        return IGGY_ERR_HISTORY_UNAVAILABLE;
    return t->code[p->partition_id];
}

static enum status section_read(struct fake_server *f, const struct fake_topic *t,
                                const struct iggy_fetch_partition *p, int64_t left, struct wbuf *out,
                                struct iggy_fetch_section *s) {
    struct iggy_cut cut = {.offset = p->strategy.value,
                           .count_max = UINT32_MAX,
                           .bytes_max = p->bytes_max < left ? p->bytes_max : left};
    enum status st = ST_OK;
    *s = (struct iggy_fetch_section){.partition_id = p->partition_id, .status = section_code(t, p)};
    if (s->status)
        return ST_OK;
    if (left > 0 || out->bytes == 0)
        st = log_read(f, t, p->partition_id, NO_TIME, &cut, out);
    s->current_offset = last_offset(t, p->partition_id);
    s->messages_count = cut.count;
    s->batches_bytes = (uint32_t)cut.bytes;
    s->next_offset = cut.offset;
    return st;
}

static void fetch_park(struct fake_call *c, uint64_t wait_us) {
    struct fake_server *f = c->f;
    CHECK(f->waiting_count < FAKE_HELD_MAX);
    struct fake_held *held = &f->waiting[f->waiting_count++];
    *held = (struct fake_held){.conn = c->conn,
                               .header = *c->h,
                               .body = fake_take((size_t)c->body.len),
                               .body_len = (size_t)c->body.len,
                               .until_ms = clock_ms() + (int64_t)(wait_us / US_PER_MS)};
    memcpy(held->body, c->body.ptr, (size_t)c->body.len);
}

void fake_on_fetch(struct fake_call *c) {
    const struct iggy_fetch_messages_req *in = fake_decoded(c);
    struct fake_server *f = c->f;
    struct fake_topic *t = fake_topic_of(f, in->stream.name, in->topic.name);
    f->fetch = *in;
    CHECK(in->partitions_count > 0 && in->partitions_count <= IGGY_FETCH_PARTITIONS_MAX);
    CHECK(in->request_timeout_us >= in->wait_us + 1000000 && in->wait_us <= IGGY_POLL_WAIT_US_MAX);
    if (!t) {
        fake_answer(c, IGGY_ERR_TOPIC_ID_NOT_FOUND, NULL);
        return;
    }
    struct iggy_fetch_section *sections = fake_take(in->partitions_count * sizeof *sections);
    struct iggy_fetch_messages_res res = {.sections = sections, .sections_count = in->partitions_count};
    struct wbuf out;
    uint64_t found = 0;
    bool failed = false;
    wbuf_init(&out, ANSWER_MAX);
    for (uint32_t i = 0; i < in->partitions_count; i++) {
        int64_t left = (int64_t)in->bytes_max - (int64_t)out.bytes;
        if (section_read(f, t, &in->partitions[i], left, &out, &sections[i])) {
            wbuf_release(&out);
            mem_free(sections);
            fake_on_fetch(c);
            return;
        }
        found += sections[i].messages_count;
        failed |= sections[i].status != 0;
    }
    if (found < in->min_count && in->wait_us > 0 && !failed && !c->last) {
        fetch_park(c, in->wait_us);
    } else {
        uint8_t *flat = fake_take(out.bytes + 1);
        wbuf_flatten(&out, flat);
        res.batches = (struct bytes){flat, (int32_t)out.bytes};
        fake_answer(c, 0, &res);
        mem_free(flat);
    }
    wbuf_release(&out);
    mem_free(sections);
}

/* What waits is run again where it has to be, and forgotten; what has to wait on comes back. */
static void waiting_run(struct fake_server *f, bool all) {
    struct fake_held again[FAKE_HELD_MAX];
    int count = f->waiting_count;
    int64_t now_ms = clock_ms();
    memcpy(again, f->waiting, (size_t)count * sizeof again[0]);
    f->waiting_count = 0;
    for (int i = 0; i < count; i++) {
        bool last = again[i].until_ms <= now_ms;
        if (!all && !last) {
            f->waiting[f->waiting_count++] = again[i];
            continue;
        }
        int before = f->waiting_count;
        int64_t until_ms = again[i].until_ms;
        fake_run(f, &again[i], last);
        if (f->waiting_count > before)
            f->waiting[before].until_ms = until_ms;
    }
    pthread_cond_broadcast(&f->changed);
}

void fake_log_changed(struct fake_server *f) {
    waiting_run(f, true);
}

void fake_log_expire(struct fake_server *f) {
    waiting_run(f, false);
}

int fake_log_timeout_ms(const struct fake_server *f) {
    int64_t least = INT64_MAX, now_ms = clock_ms();
    for (int i = 0; i < f->waiting_count; i++)
        least = f->waiting[i].until_ms < least ? f->waiting[i].until_ms : least;
    if (least == INT64_MAX)
        return -1;
    return least > now_ms ? (int)(least - now_ms < 100000 ? least - now_ms : 100000) : 0;
}

/* There is no answer. */
void fake_on_cancel(struct fake_call *c) {
    struct fake_server *f = c->f;
    f->cancels++;
    for (int i = 0; i < f->waiting_count; i++) {
        if (f->waiting[i].conn != c->conn || f->waiting[i].header.request != c->h->request)
            continue;
        mem_free(f->waiting[i].body);
        f->waiting[i] = f->waiting[--f->waiting_count];
        return;
    }
}

void fake_log_release(struct fake_server *f) {
    for (int i = 0; i < f->waiting_count; i++)
        mem_free(f->waiting[i].body);
    for (int i = 0; i < f->stored_count; i++)
        mem_free(f->stored[i].bytes);
}

/* ---- for the test ---- */

/* "kafka.v" = raw 02: a mapping that nobody knows. */
static const uint8_t unknown_mapping[] = {2, 7, 0, 0, 0, 'k', 'a', 'f', 'k', 'a', '.', 'v', 1, 1, 0, 0, 0, 2};

void fake_write(struct fake_server *f, const char *topic, uint32_t partition, struct fake_messages m) {
    struct iggy_batch_builder b = {0};
    struct bytes made;
    struct iggy_batch batch;
    int32_t len = m.len ? m.len : 1, headers_len = m.no_record ? (int32_t)sizeof unknown_mapping : 0;
    fake_lock(f);
    uint64_t time_us = m.time_us ? m.time_us : f->now_us;
    CHECK_EQ(iggy_batch_builder_init(&b, time_us, 0), ST_OK);
    for (uint32_t i = 0; i < (m.count ? m.count : 1); i++) {
        uint8_t *body;
        CHECK_EQ(iggy_batch_builder_add(&b, NULL, time_us + i * US_PER_MS, len, headers_len, &body), ST_OK);
        memset(body, m.letter, (size_t)len);
        memcpy(body + len, unknown_mapping, (size_t)headers_len);
    }
    iggy_batch_builder_finish(&b, &made);
    CHECK_EQ(iggy_batch_read(made, true, &batch), ST_OK);
    fake_store(f, fake_topic_named(f, topic), partition, &batch);
    fake_log_changed(f);
    fake_unlock(f);
    iggy_batch_builder_release(&b);
}

void fake_trim(struct fake_server *f, const char *topic, uint32_t partition, uint64_t start) {
    fake_lock(f);
    fake_topic_named(f, topic)->start[partition] = start;
    fake_unlock(f);
}

void fake_refuse_part(struct fake_server *f, const char *topic, uint32_t partition, uint32_t code) {
    fake_lock(f);
    fake_topic_named(f, topic)->code[partition] = code;
    fake_log_changed(f);
    fake_unlock(f);
}

void fake_mute(struct fake_server *f, const char *topic, uint32_t partition, bool mute) {
    fake_lock(f);
    fake_topic_named(f, topic)->mute[partition] = mute;
    fake_unlock(f);
}

void fake_grow(struct fake_server *f, const char *topic, uint32_t partitions_count) {
    fake_lock(f);
    fake_topic_named(f, topic)->partitions_count = partitions_count;
    fake_unlock(f);
}

void fake_expect_waiting(struct fake_server *f, int count) {
    fake_lock(f);
    while (f->waiting_count != count)
        fake_wait_for_change(f);
    fake_unlock(f);
}

void fake_expect_cancels(struct fake_server *f, int count) {
    fake_lock(f);
    while (f->cancels < count)
        fake_wait_for_change(f);
    fake_unlock(f);
}

void fake_hang_up_all(struct fake_server *f) {
    fake_lock(f);
    for (int i = 0; i < FAKE_CONNS_MAX; i++)
        if (f->conns[i].fd >= 0)
            shutdown(f->conns[i].fd, SHUT_RDWR); /* its own thread closes it */
    fake_unlock(f);
}

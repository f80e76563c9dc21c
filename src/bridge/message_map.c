#include "bridge/message_map.h"

#include <stdlib.h>

#include "base/le.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "bridge/envelope.h"
#include "bridge/markers.h"
#include "iggy/tlv.h"

#define TIMESTAMP_NONE   (-1)
#define US_PER_MS        1000
#define HEADERS_ROOM_MIN 16
#define HEADERS_KEPT_MAX 4096 /* more room than for so many headers is given back */

/* The marker headers of a message. ptr NULL: it is not there. */
struct markers {
    struct tlv_entry version, key, value, time, envelope;
};

/* One record to be. */
struct parts {
    struct bytes key, value;
    int32_t headers_count; /* in message_map.headers */
    int64_t timestamp_ms;
};

void message_map_init(struct message_map *m, struct spare *out, int64_t from_offset, bool skip) {
    m->out = out;
    m->base_offset = -1;
    m->next_offset = from_offset;
    m->skip = skip;
    m->begun = false;
}

static enum status headers_reserve(struct message_map *m, size_t count) {
    if (count <= m->headers_room)
        return ST_OK;
    size_t room = m->headers_room * 2 > HEADERS_ROOM_MIN ? m->headers_room * 2 : HEADERS_ROOM_MIN;
    room = room > count ? room : count;
    struct record_header *headers = mem_grow(m->headers, room * sizeof *headers);
    if (!headers)
        return ST_NO_MEMORY;
    m->headers = headers;
    m->headers_room = room;
    return ST_OK;
}

/* ---- user headers ---- */

static bool key_is(const struct tlv_entry *e, struct str name) {
    return str_equal((struct str){(const char *)e->key.ptr, e->key.len}, name);
}

/* Keeps e where it is a marker. Only a string can be one: anything else is another key to those who write markers. */
static void marker_keep(struct markers *marks, const struct tlv_entry *e) {
    if (e->key_kind != TLV_STRING)
        return;
    if (key_is(e, STR(MARKER_VERSION)))
        marks->version = *e;
    else if (key_is(e, STR(MARKER_KEY)))
        marks->key = *e;
    else if (key_is(e, STR(MARKER_VALUE)))
        marks->value = *e;
    else if (key_is(e, STR(MARKER_TIME)))
        marks->time = *e;
    else if (key_is(e, STR(MARKER_ENVELOPE)))
        marks->envelope = *e;
}

/* All headers with a name, as they stand. ST_UNMAPPABLE: the block is not well formed (E-12). */
static enum status headers_read(struct message_map *m, struct bytes block, struct markers *marks,
                                int32_t *count_out) {
    struct tlv_entry e;
    enum status st;
    int32_t count = 0;
    while ((st = tlv_next(&block, &e)) == ST_OK) {
        if (!utf8_is_valid(e.key.ptr, (size_t)e.key.len))
            continue; /* E-10: no name for a Kafka header */
        marker_keep(marks, &e);
        if (headers_reserve(m, (size_t)count + 1))
            return ST_NO_MEMORY;
        m->headers[count++] = (struct record_header){{(const char *)e.key.ptr, e.key.len}, e.value};
    }
    *count_out = count;
    return st == ST_NOT_FOUND ? ST_OK : ST_UNMAPPABLE;
}

static int names_compare(const void *a, const void *b) {
    return str_compare(((const struct record_header *)a)->key, ((const struct record_header *)b)->key);
}

static bool is_ascending(const struct record_header *headers, int32_t count) {
    for (int32_t i = 1; i < count; i++)
        if (names_compare(&headers[i - 1], &headers[i]) >= 0)
            return false;
    return true;
}

/* Of a gateway's message only its Kafka headers, by their own names. ST_UNMAPPABLE: two of one name (E-12). */
static enum status headers_strip(struct message_map *m, int32_t *count) {
    const int32_t prefix = (int32_t)MARKER_BYTES(MARKER_HEADER);
    int32_t kept = 0;
    for (int32_t i = 0; i < *count; i++) {
        struct record_header h = m->headers[i];
        if (h.key.len < prefix || memcmp(h.key.ptr, MARKER_HEADER, (size_t)prefix) != 0)
            continue;
        h.key = (struct str){h.key.ptr + prefix, h.key.len - prefix};
        m->headers[kept++] = h;
    }
    *count = kept;
    if (is_ascending(m->headers, kept))
        return ST_OK;
    /* Another writer's order, which stays: names are compared in a sorted copy behind it. */
    if (headers_reserve(m, 2 * (size_t)kept))
        return ST_NO_MEMORY;
    struct record_header *sorted = m->headers + kept;
    memcpy(sorted, m->headers, (size_t)kept * sizeof *sorted);
    qsort(sorted, (size_t)kept, sizeof *sorted, names_compare);
    return is_ascending(sorted, kept) ? ST_OK : ST_UNMAPPABLE;
}

/* ---- a message ---- */

/* By its bytes alone: gateways write them as raw, and read them of any kind. */
static bool value_is(const struct tlv_entry *e, const void *value, int32_t len) {
    return e->value.len == len && memcmp(e->value.ptr, value, (size_t)len) == 0;
}

/* E-11: the time that the record had, where the message could not have it. Early gateways wrote "epoch" for 0, and nothing else. */
static enum status time_take(const struct tlv_entry *time, int64_t server_ms, struct parts *out) {
    if (!time->key.ptr)
        return ST_OK;
    if (value_is(time, "epoch", 5)) {
        out->timestamp_ms = 0;
        return ST_OK;
    }
    if (time->value_kind != TLV_I64 || time->value.len != sizeof(int64_t))
        return ST_UNMAPPABLE;
    int64_t ms = (int64_t)le_get64(time->value.ptr);
    if (ms < TIMESTAMP_NONE)
        return ST_UNMAPPABLE;
    out->timestamp_ms = ms == TIMESTAMP_NONE ? server_ms : ms;
    return ST_OK;
}

static enum status value_take(const struct tlv_entry *value, struct parts *out) {
    if (!value->key.ptr)
        return ST_OK;
    if (value_is(value, "null", 4))
        out->value = BYTES_NULL;
    else if (value_is(value, "empty", 5))
        out->value.len = 0;
    else
        return ST_UNMAPPABLE;
    return ST_OK;
}

/* The payload is key, value and headers. */
static enum status envelope_take(struct message_map *m, const struct markers *marks, struct bytes payload,
                                 struct parts *out) {
    static const uint8_t version = ENVELOPE_VERSION;
    struct envelope e;
    if (!value_is(&marks->envelope, &version, 1) || envelope_read(payload, &e))
        return ST_UNMAPPABLE;
    if (headers_reserve(m, e.headers_count))
        return ST_NO_MEMORY;
    for (uint32_t i = 0; i < e.headers_count; i++)
        envelope_header_next(&e.headers, &m->headers[i]);
    out->key = e.key;
    out->value = e.value;
    out->headers_count = (int32_t)e.headers_count;
    return ST_OK;
}

static enum status gateway_message_read(struct message_map *m, const struct markers *marks,
                                        struct bytes payload, int64_t server_ms, struct parts *out) {
    static const uint8_t version = MAPPING_VERSION;
    if (!value_is(&marks->version, &version, 1))
        return ST_UNMAPPABLE;
    enum status st = time_take(&marks->time, server_ms, out);
    if (st)
        return st;
    if (marks->envelope.key.ptr)
        return envelope_take(m, marks, payload, out);
    st = value_take(&marks->value, out);
    if (marks->key.key.ptr)
        out->key = marks->key.value;
    return st ? st : headers_strip(m, &out->headers_count);
}

/* "kafka.v" = raw 01 alone: what most messages have (E-1). */
static bool is_plain(struct bytes headers) {
    static const uint8_t plain[] = {TLV_STRING, 7,   0,   0,       0, 'k', 'a', 'f', 'k',
                                    'a',        '.', 'v', TLV_RAW, 1, 0,   0,   0,   MAPPING_VERSION};
    return headers.len == sizeof plain && memcmp(headers.ptr, plain, sizeof plain) == 0;
}

static enum status message_read(struct message_map *m, const struct iggy_batch *b,
                                const struct iggy_message *in, struct parts *out) {
    int64_t server_ms = (int64_t)(b->base_timestamp_us / US_PER_MS);
    uint64_t origin_us = b->origin_timestamp_us + in->timestamp_delta_us;
    struct markers marks = {0};
    *out = (struct parts){.key = BYTES_NULL, .value = in->payload};
    out->timestamp_ms = origin_us == 0 ? server_ms : (int64_t)(origin_us / US_PER_MS);
    if (is_plain(in->headers))
        return ST_OK;
    enum status st = headers_read(m, in->headers, &marks, &out->headers_count);
    if (st || !marks.version.key.ptr)
        return st;
    return gateway_message_read(m, &marks, in->payload, server_ms, out);
}

enum status message_map_time(struct message_map *m, const struct iggy_batch *b, const struct iggy_message *in,
                             int64_t *ms_out) {
    struct parts p;
    enum status st = message_read(m, b, in, &p);
    if (!st)
        *ms_out = p.timestamp_ms;
    return st;
}

enum status message_map_max_time(struct message_map *m, const struct iggy_batch *b, int64_t *ms_out) {
    struct iggy_messages_iter it;
    struct iggy_message in;
    int64_t greatest = INT64_MIN, ms;
    enum status st = ST_OK;
    iggy_messages_init(&it, b);
    while (!st && (st = iggy_messages_next(&it, &in)) == ST_OK) {
        st = message_map_time(m, b, &in, &ms);
        if (!st && ms > greatest)
            greatest = ms;
        if (st == ST_UNMAPPABLE)
            st = ST_OK;
    }
    *ms_out = greatest;
    return st == ST_NOT_FOUND ? ST_OK : st;
}

/* ---- the batch ---- */

static enum status batch_begin(struct message_map *m, int64_t offset, int64_t timestamp_ms) {
    if (m->begun)
        return ST_OK;
    enum status st = batch_builder_init(&m->batch, m->out, timestamp_ms);
    m->begun = !st;
    m->base_offset = offset;
    return st;
}

/* Adds the record unless it would pass bytes_max, and isn't the first. */
static enum status record_add(struct message_map *m, const struct parts *p, int32_t delta,
                              int64_t bytes_max) {
    const struct batch_builder before = m->batch;
    size_t len = m->out->len;
    enum status st =
        batch_builder_add(&m->batch, p->timestamp_ms, delta, p->key, p->value, m->headers, p->headers_count);
    if (st == ST_TOO_BIG || (!st && before.records_count > 0 && (int64_t)m->out->len > bytes_max)) {
        m->batch = before;
        m->out->len = len;
        return ST_OVER_BUDGET;
    }
    return st;
}

static enum status message_add(struct message_map *m, const struct iggy_batch *b,
                               const struct iggy_message *in, int64_t offset, int64_t bytes_max) {
    struct parts p;
    enum status st = message_read(m, b, in, &p);
    if (st && (st != ST_UNMAPPABLE || !m->skip))
        return st;
    bool skipped = st == ST_UNMAPPABLE;
    int64_t delta = m->begun ? offset - m->base_offset : 0;
    if (delta > INT32_MAX)
        return ST_OVER_BUDGET;
    st = batch_begin(m, offset, p.timestamp_ms);
    if (!st && !skipped)
        st = record_add(m, &p, (int32_t)delta, bytes_max);
    if (st)
        return st;
    m->skipped_count += skipped;
    m->next_offset = offset + 1;
    return ST_OK;
}

enum status message_map_add(struct message_map *m, const struct iggy_batch *b, int64_t bytes_max) {
    struct iggy_messages_iter it;
    struct iggy_message in;
    enum status st;
    iggy_messages_init(&it, b);
    while ((st = iggy_messages_next(&it, &in)) == ST_OK) {
        uint64_t offset = b->base_offset + in.offset_delta;
        if (b->base_offset > INT64_MAX || offset >= INT64_MAX)
            return ST_BAD_RECORD;
        if ((int64_t)offset < m->next_offset)
            continue;
        st = message_add(m, b, &in, (int64_t)offset, bytes_max);
        if (st)
            return st;
    }
    return st == ST_NOT_FOUND ? ST_OK : st;
}

enum status message_map_finish(struct message_map *m, struct bytes *batch_out) {
    if (m->headers_room > HEADERS_KEPT_MAX) {
        mem_free(m->headers);
        m->headers = NULL;
        m->headers_room = 0;
    }
    if (!m->begun || m->next_offset <= m->base_offset)
        return ST_NOT_FOUND;
    m->batch.last_offset_delta = (int32_t)(m->next_offset - 1 - m->base_offset); /* skipped ones too */
    return batch_builder_finish(&m->batch, m->base_offset, CODEC_NONE, NULL, batch_out);
}

void message_map_release(struct message_map *m) {
    mem_free(m->headers);
    *m = (struct message_map){0};
}

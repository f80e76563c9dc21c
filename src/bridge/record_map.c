#include "bridge/record_map.h"

#include "base/le.h"
#include "base/utf8.h"
#include "bridge/envelope.h"
#include "bridge/markers.h"
#include "iggy/tlv.h"

#define TIMESTAMP_NONE   (-1)
#define US_PER_MS        1000
#define TIMESTAMP_MS_MAX ((int64_t)(UINT64_MAX / US_PER_MS))
#define NAME_BYTES_MAX   (TLV_FIELD_BYTES_MAX - (int32_t)MARKER_BYTES(MARKER_HEADER))
/* What a record takes more than in Kafka, for the first guess at the size of a batch: a message header, and "kafka.v" with its value. */
#define OVERHEAD_BYTES (IGGY_MESSAGE_HEADER_BYTES + TLV_ENTRY_OVERHEAD + 8)

/* How one record becomes a message. */
struct plan {
    uint64_t origin_us;
    int64_t timestamp_ms;
    bool keep_timestamp; /* in a header, because origin_us is not it */
    bool enveloped;
    int32_t payload_bytes, headers_bytes;
};

/*
 * A record's time, in ms. Sent on to a server it is the record's own, whatever the batch says of LogAppendTime (E-4); from the log, what its
 * Kafka readers see. Wraps as Java's long.
 */
static int64_t map_timestamp(const struct records_map *m, const struct record *r) {
    return m->stored ? record_timestamp(m->b, r)
                     : (int64_t)((uint64_t)m->b->base_timestamp + (uint64_t)r->timestamp_delta);
}

static enum status refuse(enum status st, const char *reason, const char **reason_out) {
    *reason_out = reason;
    return st;
}

/* Look at all records: E-3, the window from the least time above 0, as far as Iggy's deltas reach; and the offset deltas. */
static enum status map_init(struct records_map *m, struct bytes body, const char **reason_out) {
    struct records_iter it;
    struct record r;
    enum status st;
    int64_t least = INT64_MAX, delta_before = -1;
    records_iter_init(&it, body, m->b->records_count);
    while ((st = records_next(&it, &r)) == ST_OK) {
        int64_t ms = map_timestamp(m, &r);
        bool fits = ms >= TIMESTAMP_NONE && ms <= TIMESTAMP_MS_MAX;
        if (!fits && !m->stored)
            return refuse(ST_BAD_RECORD, "A record's timestamp can't be kept in microseconds.", reason_out);
        if (fits && ms > 0 && ms < least)
            least = ms;
        m->by_number |= r.offset_delta <= delta_before || r.offset_delta > m->b->last_offset_delta;
        delta_before = r.offset_delta;
    }
    if (st != ST_NOT_FOUND)
        return refuse(ST_BAD_RECORD, "The records are not well formed.", reason_out);
    records_iter_init(&m->it, body, m->b->records_count);
    m->start_us = least == INT64_MAX ? 0 : (uint64_t)least * US_PER_MS;
    m->end_us =
        UINT64_MAX - m->start_us < IGGY_BATCH_SPAN_US_MAX ? UINT64_MAX : m->start_us + IGGY_BATCH_SPAN_US_MAX;
    return ST_OK;
}

static uint64_t us_of_ms(int64_t ms) {
    return ms <= 0 ? 0 : ms > TIMESTAMP_MS_MAX ? UINT64_MAX : (uint64_t)ms * US_PER_MS;
}

static void plan_timestamp(const struct records_map *m, struct plan *out) {
    int64_t ms = out->timestamp_ms;
    uint64_t us = us_of_ms(ms);
    out->origin_us = us < m->start_us ? m->start_us : us > m->end_us ? m->end_us : us;
    out->keep_timestamp = out->origin_us != us || ms == 0 || ms < TIMESTAMP_NONE || ms > TIMESTAMP_MS_MAX;
}

/*
 * What the record's headers take as user headers. -1: they can't be such: E-20, and the order that every reader of Iggy's maps gives back,
 * each name once (H-19).
 */
static int64_t native_headers_bytes(const struct record *r) {
    struct bytes at = r->headers;
    struct str before = STR_NULL;
    int64_t bytes = 0;
    for (int32_t i = 0; i < r->headers_count; i++) {
        struct record_header h;
        if (record_header_next(&at, &h) || h.value.len < 1 || h.value.len > TLV_FIELD_BYTES_MAX ||
            h.key.len > NAME_BYTES_MAX)
            return -1;
        if ((i > 0 && str_compare(before, h.key) >= 0) || !utf8_is_valid(h.key.ptr, (size_t)h.key.len))
            return -1;
        before = h.key;
        bytes += (int64_t)tlv_bytes(MARKER_BYTES(MARKER_HEADER) + (size_t)h.key.len, (size_t)h.value.len);
        if (bytes > IGGY_USER_HEADERS_BYTES_MAX)
            return -1;
    }
    return bytes;
}

static int64_t timestamp_bytes(const struct plan *p) {
    return p->keep_timestamp ? (int64_t)tlv_bytes(MARKER_BYTES(MARKER_TIME), sizeof(int64_t)) : 0;
}

/* The text of MARKER_VALUE for a value that is no payload; len 0: the value is one. */
static struct str value_marker(const struct record *r) {
    return r->value.len < 0 ? STR("null") : r->value.len == 0 ? STR("empty") : (struct str){"", 0};
}

static enum status plan_record(const struct records_map *m, const struct record *r, struct plan *out) {
    out->timestamp_ms = map_timestamp(m, r);
    plan_timestamp(m, out);
    int64_t headers = native_headers_bytes(r), payload = r->value.len > 0 ? r->value.len : 1;
    int64_t fixed = (int64_t)tlv_bytes(MARKER_BYTES(MARKER_VERSION), 1) + timestamp_bytes(out);
    if (r->key.len >= 0)
        fixed += (int64_t)tlv_bytes(MARKER_BYTES(MARKER_KEY), (size_t)r->key.len);
    if (r->value.len <= 0)
        fixed += (int64_t)tlv_bytes(MARKER_BYTES(MARKER_VALUE), (size_t)value_marker(r).len);
    out->enveloped = headers < 0 || r->key.len == 0 || r->key.len > TLV_FIELD_BYTES_MAX ||
                     headers + fixed > IGGY_USER_HEADERS_BYTES_MAX;
    if (out->enveloped) {
        payload = envelope_bytes(r);
        headers = (int64_t)(tlv_bytes(MARKER_BYTES(MARKER_VERSION), 1) +
                            tlv_bytes(MARKER_BYTES(MARKER_ENVELOPE), 1));
        fixed = timestamp_bytes(out);
    }
    if (payload > (m->stored ? INT32_MAX : IGGY_PAYLOAD_BYTES_MAX))
        return ST_TOO_BIG;
    out->payload_bytes = (int32_t)payload;
    out->headers_bytes = (int32_t)(headers + fixed);
    return ST_OK;
}

/* ---- writing ---- */

static uint8_t *marker_write(uint8_t *at, struct str name, uint8_t kind, const void *value,
                             int32_t value_len) {
    const struct tlv_entry e = {.key_kind = TLV_STRING,
                                .value_kind = kind,
                                .key = {(const uint8_t *)name.ptr, name.len},
                                .value = {value, value_len}};
    return tlv_write(at, &e);
}

static uint8_t *version_write(uint8_t *at) {
    static const uint8_t version = MAPPING_VERSION;
    return marker_write(at, STR(MARKER_VERSION), TLV_RAW, &version, 1);
}

static uint8_t *timestamp_write(uint8_t *at, const struct plan *p) {
    uint8_t ms[sizeof(int64_t)];
    if (!p->keep_timestamp)
        return at;
    le_set64(ms, (uint64_t)p->timestamp_ms);
    return marker_write(at, STR(MARKER_TIME), TLV_I64, ms, sizeof ms);
}

static uint8_t *header_write(uint8_t *at, const struct record_header *h) {
    char name[TLV_FIELD_BYTES_MAX] = MARKER_HEADER;
    if (h->key.len > 0)
        memcpy(name + MARKER_BYTES(MARKER_HEADER), h->key.ptr, (size_t)h->key.len);
    struct str key = {name, (int32_t)MARKER_BYTES(MARKER_HEADER) + h->key.len};
    return marker_write(at, key, TLV_RAW, h->value.ptr, h->value.len);
}

/* Entries in the order of their keys, as a writer that keeps them in a sorted map has them. */
static uint8_t *native_write(uint8_t *at, const struct record *r, const struct plan *p) {
    struct bytes left = r->headers;
    if (r->value.len > 0)
        memcpy(at, r->value.ptr, (size_t)r->value.len);
    else
        at[0] = 0;
    at += p->payload_bytes;
    for (int32_t i = 0; i < r->headers_count; i++) {
        struct record_header h;
        if (record_header_next(&left, &h))
            break;
        at = header_write(at, &h);
    }
    if (r->key.len > 0)
        at = marker_write(at, STR(MARKER_KEY), TLV_RAW, r->key.ptr, r->key.len);
    at = version_write(timestamp_write(at, p));
    struct str marker = value_marker(r);
    return marker.len > 0 ? marker_write(at, STR(MARKER_VALUE), TLV_RAW, marker.ptr, marker.len) : at;
}

static uint8_t *enveloped_write(uint8_t *at, const struct record *r, const struct plan *p) {
    static const uint8_t version = ENVELOPE_VERSION;
    at = envelope_write(at, r);
    at = marker_write(at, STR(MARKER_ENVELOPE), TLV_RAW, &version, 1);
    return version_write(timestamp_write(at, p));
}

/* ST_TOO_BIG, ST_NO_MEMORY, as iggy_batch_builder_add. */
static enum status record_write(const struct record *r, const struct plan *p,
                                struct iggy_batch_builder *out) {
    uint8_t *at;
    enum status st = iggy_batch_builder_add(out, NULL, p->origin_us, p->payload_bytes, p->headers_bytes, &at);
    if (st)
        return st;
    uint8_t *end = p->enveloped ? enveloped_write(at, r, p) : native_write(at, r, p);
    assert(end - at == (ptrdiff_t)p->payload_bytes + p->headers_bytes);
    (void)end;
    return ST_OK;
}

static enum status record_add(const struct records_map *m, const struct record *r,
                              struct iggy_batch_builder *out, const char **reason_out) {
    struct plan p;
    enum status st = plan_record(m, r, &p);
    if (st)
        return refuse(st, "A record is larger than an Iggy message may be.", reason_out);
    st = record_write(r, &p, out);
    if (st)
        return refuse(
            st, st == ST_TOO_BIG ? "The records are larger than an Iggy batch may be." : status_text(st),
            reason_out);
    return ST_OK;
}

/* What the rest of the records will about take. */
static size_t bytes_guess(const struct records_iter *it) {
    return IGGY_BATCH_HEADER_BYTES + (size_t)(it->end - it->at) + (size_t)it->left * OVERHEAD_BYTES;
}

enum status records_to_messages(const struct batch *b, struct bytes body, bool with_producer,
                                struct iggy_batch_builder *out, struct bytes *batch_out,
                                const char **reason_out) {
    struct record r;
    struct records_map m = {.b = b};
    enum status st = map_init(&m, body, reason_out);
    if (st)
        return st;
    st = iggy_batch_builder_init(out, m.start_us, bytes_guess(&m.it));
    if (st)
        return refuse(st, status_text(st), reason_out);
    if (with_producer && b->producer_id >= 0 && b->producer_epoch >= 0 && b->base_sequence >= 0)
        out->producer = (struct iggy_producer){.present = true,
                                               .id = (uint64_t)b->producer_id,
                                               .epoch = (uint16_t)b->producer_epoch,
                                               .base_sequence = (uint32_t)b->base_sequence};
    while (!st && records_next(&m.it, &r) == ST_OK)
        st = record_add(&m, &r, out, reason_out);
    if (!st)
        iggy_batch_builder_finish(out, batch_out);
    return st;
}

/* ---- from the log ---- */

enum status records_map_init(struct records_map *m, const struct batch *b, struct bytes body,
                             int64_t from_offset) {
    const char *reason;
    *m = (struct records_map){.b = b, .stored = true, .from_offset = from_offset};
    return b->last_offset_delta < b->records_count - 1 ? ST_BAD_RECORD : map_init(m, body, &reason);
}

/* ST_OVER_BUDGET: it would pass bytes_max, and isn't the first. */
static enum status stored_add(const struct records_map *m, const struct record *r, int64_t offset,
                              int64_t bytes_max, struct iggy_batch_builder *out) {
    struct plan p;
    enum status st = plan_record(m, r, &p);
    if (st)
        return st;
    int64_t end = (int64_t)out->len + IGGY_MESSAGE_HEADER_BYTES + p.payload_bytes + p.headers_bytes;
    if (out->messages_count > 0 && end > bytes_max)
        return ST_OVER_BUDGET;
    if (out->messages_count == 0)
        out->base_offset = (uint64_t)offset;
    out->next_delta = (uint32_t)((uint64_t)offset - out->base_offset);
    return record_write(r, &p, out);
}

/* Records from the iterator on, which stays before the first that isn't in. */
static enum status stored_add_all(struct records_map *m, int64_t bytes_max, struct iggy_batch_builder *out) {
    struct records_iter it = m->it;
    struct record r;
    while (records_next(&it, &r) == ST_OK) {
        int64_t offset = m->b->base_offset + (m->by_number ? m->number : r.offset_delta);
        if (offset >= m->from_offset) {
            enum status st = stored_add(m, &r, offset, bytes_max, out);
            if (st)
                return st == ST_OVER_BUDGET ? ST_OK : st;
        }
        m->it = it;
        m->number++;
    }
    return ST_OK;
}

enum status records_map_next(struct records_map *m, int64_t bytes_max, struct iggy_batch_builder *out,
                             struct bytes *batch_out) {
    const struct records_map before = *m;
    if (m->it.left == 0)
        return ST_NOT_FOUND;
    size_t guess = bytes_guess(&m->it);
    enum status st =
        iggy_batch_builder_init(out, m->start_us, bytes_max < (int64_t)guess ? (size_t)bytes_max : guess);
    if (st)
        return st;
    out->partition_id = m->partition;
    out->base_timestamp_us = us_of_ms(m->b->max_timestamp);
    st = stored_add_all(m, bytes_max, out);
    if (st) {
        *m = before;
        return st;
    }
    if (out->messages_count == 0)
        return ST_NOT_FOUND;
    iggy_batch_builder_finish(out, batch_out);
    return ST_OK;
}

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

/* What the messages of one send may have as their time (E-3). */
struct window {
    uint64_t start_us, end_us;
};

/* How one record becomes a message. */
struct plan {
    uint64_t origin_us;
    int64_t timestamp_ms;
    bool keep_timestamp; /* in a header, because origin_us is not it */
    bool enveloped;
    int32_t payload_bytes, headers_bytes;
};

/* A record's own time, whatever the batch says of LogAppendTime (E-4). Wraps as Java's long. */
static int64_t own_timestamp(const struct batch *b, const struct record *r) {
    return (int64_t)((uint64_t)b->base_timestamp + (uint64_t)r->timestamp_delta);
}

static enum status refuse(enum status st, const char *reason, const char **reason_out) {
    *reason_out = reason;
    return st;
}

/* E-3: from the least time above 0, as far as Iggy's deltas reach. */
static enum status window_find(const struct batch *b, struct bytes body, struct window *out,
                               const char **reason_out) {
    struct records_iter it;
    struct record r;
    enum status st;
    int64_t least = INT64_MAX;
    records_iter_init(&it, body, b->records_count);
    while ((st = records_next(&it, &r)) == ST_OK) {
        int64_t ms = own_timestamp(b, &r);
        if (ms < TIMESTAMP_NONE || ms > TIMESTAMP_MS_MAX)
            return refuse(ST_BAD_RECORD, "A record's timestamp can't be kept in microseconds.", reason_out);
        if (ms > 0 && ms < least)
            least = ms;
    }
    if (st != ST_NOT_FOUND)
        return refuse(ST_BAD_RECORD, "The records are not well formed.", reason_out);
    out->start_us = least == INT64_MAX ? 0 : (uint64_t)least * US_PER_MS;
    out->end_us = UINT64_MAX - out->start_us < IGGY_BATCH_SPAN_US_MAX
                      ? UINT64_MAX
                      : out->start_us + IGGY_BATCH_SPAN_US_MAX;
    return ST_OK;
}

static void plan_timestamp(const struct window *w, struct plan *out) {
    uint64_t us = out->timestamp_ms > 0 ? (uint64_t)out->timestamp_ms * US_PER_MS : 0;
    out->origin_us = us < w->start_us ? w->start_us : us > w->end_us ? w->end_us : us;
    out->keep_timestamp = out->origin_us != us || out->timestamp_ms == 0;
}

static int names_compare(struct str a, struct str b) {
    int32_t common = a.len < b.len ? a.len : b.len;
    int order = common > 0 ? memcmp(a.ptr, b.ptr, (size_t)common) : 0;
    return order ? order : a.len - b.len;
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
        if ((i > 0 && names_compare(before, h.key) >= 0) || !utf8_is_valid(h.key.ptr, (size_t)h.key.len))
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

static enum status plan_record(const struct record *r, const struct window *w, struct plan *out) {
    plan_timestamp(w, out);
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
    if (payload > IGGY_PAYLOAD_BYTES_MAX)
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

static enum status record_add(const struct batch *b, const struct record *r, const struct window *w,
                              struct iggy_batch_builder *out, const char **reason_out) {
    struct plan p = {.timestamp_ms = own_timestamp(b, r)};
    uint8_t *at;
    enum status st = plan_record(r, w, &p);
    if (st)
        return refuse(st, "A record is larger than an Iggy message may be.", reason_out);
    st = iggy_batch_builder_add(out, NULL, p.origin_us, p.payload_bytes, p.headers_bytes, &at);
    if (st)
        return refuse(
            st, st == ST_TOO_BIG ? "The records are larger than an Iggy batch may be." : status_text(st),
            reason_out);
    uint8_t *end = p.enveloped ? enveloped_write(at, r, &p) : native_write(at, r, &p);
    assert(end - at == (ptrdiff_t)p.payload_bytes + p.headers_bytes);
    (void)end;
    return ST_OK;
}

enum status records_to_messages(const struct batch *b, struct bytes body, bool with_producer,
                                struct iggy_batch_builder *out, struct bytes *batch_out,
                                const char **reason_out) {
    struct records_iter it;
    struct record r;
    struct window w;
    enum status st = window_find(b, body, &w, reason_out);
    if (st)
        return st;
    size_t hint = IGGY_BATCH_HEADER_BYTES + (size_t)body.len + (size_t)b->records_count * OVERHEAD_BYTES;
    st = iggy_batch_builder_init(out, w.start_us, hint);
    if (st)
        return refuse(st, status_text(st), reason_out);
    if (with_producer && b->producer_id >= 0 && b->producer_epoch >= 0 && b->base_sequence >= 0)
        out->producer = (struct iggy_producer){.present = true,
                                               .id = (uint64_t)b->producer_id,
                                               .epoch = (uint16_t)b->producer_epoch,
                                               .base_sequence = (uint32_t)b->base_sequence};
    records_iter_init(&it, body, b->records_count);
    while (!st && records_next(&it, &r) == ST_OK)
        st = record_add(b, &r, &w, out, reason_out);
    if (!st)
        iggy_batch_builder_finish(out, batch_out);
    return st;
}

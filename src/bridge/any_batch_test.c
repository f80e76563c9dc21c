#include "bridge/any_batch_test.h"

#include "testing/test.h"

#define T0 1700000000000 /* ms */

static uint64_t seed;

void any_seed(uint64_t number) {
    seed = number * UINT64_C(0x9e3779b97f4a7c15);
}

uint32_t any_below(uint32_t n) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 32) % n;
}

struct any_record any_produced[ANY_RECORDS_MAX];

/* Bytes out of a pool, of the lengths at which something changes. */
static struct bytes any_bytes(bool nullable) {
    static uint8_t pool[2048];
    static const int32_t lengths[] = {0, 1, 2, 5, 20, 100, 247, 248, 255, 256, 300, 1000};
    if (pool[1] == 0)
        for (size_t i = 0; i < sizeof pool; i++)
            pool[i] = (uint8_t)(i * 7 + i / 251);
    if (nullable && any_below(5) == 0)
        return BYTES_NULL;
    return (struct bytes){pool + any_below(1000), lengths[any_below(COUNT_OF(lengths))]};
}

static struct str any_name(void) {
    static const char *const names[] = {"",          "a",        "aa",   "b",        "kafka.v", "kafka.key",
                                        "kafka.h.a", "\xc3\xa9", "\xff", "trace-id", "z"};
    if (any_below(12) > 0)
        return str_of(names[any_below(COUNT_OF(names))]);
    struct bytes any = any_bytes(false);
    return (struct str){(const char *)any.ptr, any.len};
}

static int64_t any_time(int64_t base) {
    switch (any_below(8)) {
    case 0:
        return -1;
    case 1:
        return any_below(2);
    case 2:
        return base < T0 * 2 ? base + (int64_t)any_below(UINT32_MAX) * 3 : base;
    case 3:
        return 4294966 + (int64_t)any_below(4);
    default:
        return base + any_below(5000);
    }
}

int any_batch(struct batch_builder *k, struct spare *out) {
    static const int64_t bases[] = {0, 1, T0, INT64_C(18446744000000000)};
    int count = 1 + (int)any_below(ANY_RECORDS_MAX);
    int64_t base = bases[any_below(COUNT_OF(bases))];
    bool plain_names = any_below(2) == 0;
    CHECK_EQ(batch_builder_init(k, out, any_below(2) ? base : T0), ST_OK);
    for (int i = 0; i < count; i++) {
        any_produced[i].timestamp = any_time(base);
        any_produced[i].key = any_bytes(true);
        any_produced[i].value = any_bytes(true);
        any_produced[i].headers_count = any_below(3) ? (int32_t)any_below(ANY_HEADERS_MAX + 1) : 0;
        for (int32_t h = 0; h < any_produced[i].headers_count; h++) {
            static const char letters[] = "abcdefgh";
            struct str name = plain_names ? (struct str){letters + h, 1} : any_name();
            any_produced[i].headers[h] = (struct record_header){name, any_bytes(!plain_names)};
        }
        CHECK_EQ(batch_builder_add(k, any_produced[i].timestamp, -1, any_produced[i].key,
                                   any_produced[i].value, any_produced[i].headers,
                                   any_produced[i].headers_count),
                 ST_OK);
    }
    return count;
}

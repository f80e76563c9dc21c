/*
 * The envelope: a whole Kafka record as the payload of an Iggy message, for what Iggy's user headers can't hold (E-20, E-21).
 *
 *   u8 flags (1: there is a key, 2: there is a value) · u32 key length, key · u32 value length, value · u32 header count
 *   · for each: u32 name length, name, u8 1: there is a value, u32 value length, value; little-endian, lengths 0 where there is none
 * Header order and repeated names are kept. Pure functions, any thread.
 */
#ifndef BRIDGE_ENVELOPE_H
#define BRIDGE_ENVELOPE_H

#include "base/base.h"
#include "wire/records.h"

/* What envelope_write takes for r, whose headers records_next has checked. */
int64_t envelope_bytes(const struct record *r);

/* Write key, value and headers of r at `at`, where envelope_bytes of room must be. Returns the place behind them. */
uint8_t *envelope_write(uint8_t *at, const struct record *r);

/* Key and value; len -1: null. All borrowed. */
struct envelope {
    struct bytes key, value;
    struct bytes headers; /* after their count: read with envelope_header_next */
    uint32_t headers_count;
};

/*
 * Read all of a payload. ST_BAD_RECORD: it ends too early or too late, has more headers than its bytes can hold, or a flag or length
 * that no writer makes (E-12).
 */
enum status envelope_read(struct bytes payload, struct envelope *out) MUST_USE;

/* The next header of what envelope_read passed; the caller counts. */
void envelope_header_next(struct bytes *at, struct record_header *out);
#endif

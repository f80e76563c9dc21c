/* The header that stands before a body. Which form it has follows from the API key and version. Source: spec B-2 to B-6, KIP-482. */
#ifndef WIRE_HEADER_H
#define WIRE_HEADER_H

#include "base/rbuf.h"
#include "base/wbuf.h"

struct request_header {
    int16_t api_key, api_version;
    int32_t correlation_id;
    struct str client_id; /* borrowed from the input; len -1: null */
};

/* 2 (with tagged fields) where the request is flexible, else 1; 1 for a key that is not in the tables. Any thread. */
int16_t request_header_version(int16_t api_key, int16_t api_version);

/* 1 (with tagged fields) where the response is flexible, else 0; always 0 for ApiVersions and unknown keys. Any thread. */
int16_t response_header_version(int16_t api_key, int16_t api_version);

/*
 * Read a header of the form that its own key and version ask for; the body follows in `in`. Tagged fields are skipped.
 * out->api_key, api_version and correlation_id are set as soon as 8 bytes are there, also when the rest is refused.
 * ST_TRUNCATED; ST_BAD_LENGTH: client_id shorter than null.
 */
enum status request_header_decode(struct rbuf *in, struct request_header *out) MUST_USE;

/* The same where the form is known: header_version 1 or 2. */
enum status request_header_decode_as(struct rbuf *in, int16_t header_version,
                                     struct request_header *out) MUST_USE;

/* Write the header of the response to (api_key, api_version). Errors as wbuf_put. */
enum status response_header_encode(int16_t api_key, int16_t api_version, int32_t correlation_id,
                                   struct wbuf *out) MUST_USE;
#endif

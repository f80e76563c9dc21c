#include "wire/header.h"

#include "base/be.h"
#include "wire/codec.h"

#define API_VERSIONS_KEY 18

int16_t request_header_version(int16_t api_key, int16_t api_version) {
    const struct schema *s = kmsg_request(api_key);
    return s && kmsg_is_flexible(s, api_version) ? 2 : 1;
}

int16_t response_header_version(int16_t api_key, int16_t api_version) {
    const struct schema *s = api_key == API_VERSIONS_KEY ? NULL : kmsg_response(api_key);
    return s && kmsg_is_flexible(s, api_version) ? 1 : 0;
}

static enum status skip_tags(struct rbuf *in) {
    uint32_t count, tag, size;
    enum status st = rbuf_uvarint(in, &count);
    for (uint32_t i = 0; !st && i < count; i++) {
        st = rbuf_uvarint(in, &tag);
        if (!st)
            st = rbuf_uvarint(in, &size);
        if (!st && size > rbuf_left(in))
            st = ST_TRUNCATED;
        if (!st)
            in->at += size;
    }
    return st;
}

/* Two bytes of length at every header version: the one string that never became compact. */
static enum status decode_client_id(struct rbuf *in, struct str *out) {
    uint64_t u;
    enum status st = rbuf_be(in, 2, &u);
    if (st)
        return st;
    int16_t len = (int16_t)u;
    if (len < -1)
        return ST_BAD_LENGTH;
    if (len > 0 && (size_t)len > rbuf_left(in))
        return ST_TRUNCATED;
    *out = (struct str){len < 0 ? NULL : (const char *)in->at, len};
    if (len > 0)
        in->at += len;
    return ST_OK;
}

enum status request_header_decode_as(struct rbuf *in, int16_t header_version, struct request_header *out) {
    *out = (struct request_header){.client_id = STR_NULL};
    if (rbuf_left(in) < 8)
        return ST_TRUNCATED;
    out->api_key = (int16_t)be_get(in->at, 2);
    out->api_version = (int16_t)be_get(in->at + 2, 2);
    out->correlation_id = (int32_t)be_get(in->at + 4, 4);
    in->at += 8;
    enum status st = decode_client_id(in, &out->client_id);
    return st || header_version < 2 ? st : skip_tags(in);
}

enum status request_header_decode(struct rbuf *in, struct request_header *out) {
    int16_t header_version = 1;
    if (rbuf_left(in) >= 4)
        header_version = request_header_version((int16_t)be_get(in->at, 2), (int16_t)be_get(in->at + 2, 2));
    return request_header_decode_as(in, header_version, out);
}

enum status response_header_encode(int16_t api_key, int16_t api_version, int32_t correlation_id,
                                   struct wbuf *out) {
    enum status st = wbuf_put_be(out, (uint64_t)correlation_id, 4);
    return st || response_header_version(api_key, api_version) == 0 ? st : wbuf_put_be(out, 0, 1);
}

#include "wire/compress.h"

#include <libdeflate.h>
#include <lz4frame.h>
#include <pthread.h>
#include <snappy-c.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/be.h"
#include "base/mem.h"
#include "base/rbuf.h"

/* What a declared size is believed: enough for ordinary ratios, too little for a lie to cost anything. */
#define HINT_RATIO_MAX ((size_t)64)
#define ROOM_FIRST     ((size_t)64 * 1024)
#define RATIO_GUESS    ((size_t)8) /* where nothing is declared */

#define KEPT_BYTES_MAX ((size_t)1 << 20) /* of a thread's spare: ordinary batches */

/* Every copy of 64 bytes costs three bytes of snappy: no block can inflate to more than this times its length. */
#define SNAPPY_RATIO_MAX 22

#define GZIP_LEVEL         6 /* Java's defaults */
#define ZSTD_LEVEL         3
#define XERIAL_HEADER      16
#define XERIAL_BLOCK_BYTES ((size_t)32 * 1024)

static const uint8_t xerial_header[XERIAL_HEADER] = {0x82, 'S', 'N', 'A', 'P', 'P', 'Y', 0,
                                                     0,    0,   0,   1,   0,   0,   0,   1};
#define XERIAL_MAGIC_BYTES 8 /* the two version numbers after it are not looked at */

/* ---- memory ---- */

/* Room for want bytes if bytes_max allows as much, else for bytes_max; half more than before when it has to grow. */
static enum status spare_reserve_below(struct spare *s, size_t want, size_t bytes_max) {
    want = want < bytes_max ? want : bytes_max;
    if (want <= s->room && s->ptr)
        return ST_OK;
    size_t half_more = s->room + s->room / 2;
    want = want > half_more ? want : half_more;
    want = want < bytes_max ? want : bytes_max;
    uint8_t *ptr = mem_grow(s->ptr, want);
    if (!ptr)
        return ST_NO_MEMORY;
    s->ptr = ptr;
    s->room = want;
    return ST_OK;
}

enum status spare_reserve(struct spare *s, size_t len) {
    return spare_reserve_below(s, len, SIZE_MAX);
}

void spare_release(struct spare *s) {
    mem_free(s->ptr);
    *s = (struct spare){0};
}

static size_t believe(size_t declared, struct bytes in) {
    size_t most = (size_t)in.len * HINT_RATIO_MAX + ROOM_FIRST;
    return declared < most ? declared : most;
}

/* ---- contexts, one set a thread: each costs more to make than a small batch to inflate ---- */

struct contexts {
    struct libdeflate_decompressor *deflate_in;
    struct libdeflate_compressor *deflate_out;
    z_stream zlib_in;
    bool zlib_ready;
    LZ4F_dctx *lz4_in;
    ZSTD_DCtx *zstd_in;
    ZSTD_CCtx *zstd_out;
    struct spare spare;
};

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;

static void contexts_free(void *ptr) {
    struct contexts *c = ptr;
    libdeflate_free_decompressor(c->deflate_in);
    libdeflate_free_compressor(c->deflate_out);
    if (c->zlib_ready)
        inflateEnd(&c->zlib_in);
    LZ4F_freeDecompressionContext(c->lz4_in);
    ZSTD_freeDCtx(c->zstd_in);
    ZSTD_freeCCtx(c->zstd_out);
    spare_release(&c->spare);
    mem_free(c);
}

static void make_key(void) {
    key_made = pthread_key_create(&key, contexts_free) == 0;
}

/* This thread's contexts; NULL: out of memory. */
static struct contexts *contexts_get(void) {
    pthread_once(&key_once, make_key);
    if (!key_made)
        return NULL;
    struct contexts *c = pthread_getspecific(key);
    if (c)
        return c;
    c = mem_take_zeroed(1, sizeof *c);
    if (c && pthread_setspecific(key, c) != 0) {
        mem_free(c);
        c = NULL;
    }
    return c;
}

struct spare *spare_of_thread(void) {
    struct contexts *c = contexts_get();
    return c ? &c->spare : NULL;
}

void spare_put_back(struct spare *s) {
    if (s->room > KEPT_BYTES_MAX)
        spare_release(s);
}

/* ---- streams: zlib and lz4 hand out what they have, whatever the room ---- */

enum step { STEP_MORE, STEP_END, STEP_BAD };
/* Read from in, write at most *out_len bytes to out, set *out_len to how many it were. */
typedef enum step step_fn(struct contexts *c, struct rbuf *in, uint8_t *out, size_t *out_len);

static enum status stream_inflate(struct contexts *c, step_fn *step, struct rbuf *in, size_t bytes_max,
                                  struct spare *out) {
    for (;;) {
        if (out->len == out->room) {
            size_t want = out->room < ROOM_FIRST ? ROOM_FIRST : out->room * 2;
            enum status st = spare_reserve_below(out, want, bytes_max);
            if (st)
                return st;
        }
        /* At the limit there may still be an end mark and checksums to read: one byte of room tells them from more data. */
        uint8_t beyond;
        bool full = out->len >= bytes_max;
        size_t room = out->room < bytes_max ? out->room : bytes_max, produced = full ? 1 : room - out->len;
        const uint8_t *before = in->at;
        enum step done = step(c, in, full ? &beyond : out->ptr + out->len, &produced);
        if (done == STEP_BAD)
            return ST_BAD_RECORD;
        if (full && produced > 0)
            return ST_TOO_BIG;
        out->len += produced;
        if (done == STEP_END)
            return ST_OK;
        if (produced == 0 && in->at == before)
            return ST_BAD_RECORD; /* cut short */
    }
}

/* ---- gzip ---- */

static void *zlib_take(void *unused, unsigned count, unsigned size) {
    (void)unused;
    return mem_take_zeroed(count, size);
}

static void zlib_free(void *unused, void *ptr) {
    (void)unused;
    mem_free(ptr);
}

static enum status zlib_start(struct contexts *c) {
    if (c->zlib_ready)
        return inflateReset(&c->zlib_in) == Z_OK ? ST_OK : ST_NO_MEMORY;
    c->zlib_in = (z_stream){.zalloc = zlib_take, .zfree = zlib_free};
    c->zlib_ready = inflateInit2(&c->zlib_in, 16 + MAX_WBITS) == Z_OK; /* 16: gzip only, no zlib header */
    return c->zlib_ready ? ST_OK : ST_NO_MEMORY;
}

static enum step zlib_step(struct contexts *c, struct rbuf *in, uint8_t *out, size_t *out_len) {
    c->zlib_in.next_in = (Bytef *)(uintptr_t)in->at;
    c->zlib_in.avail_in = (uInt)rbuf_left(in);
    c->zlib_in.next_out = out;
    c->zlib_in.avail_out = *out_len < UINT32_MAX ? (uInt)*out_len : UINT32_MAX;
    int rc = inflate(&c->zlib_in, Z_NO_FLUSH);
    *out_len = (size_t)(c->zlib_in.next_out - out);
    in->at = c->zlib_in.next_in;
    if (rc == Z_STREAM_END)
        return STEP_END;
    return rc == Z_OK || rc == Z_BUF_ERROR ? STEP_MORE : STEP_BAD;
}

/* One member. libdeflate is three times as fast but needs the whole room at once, so it gets those whose declared size is plausible. */
static enum status gzip_member(struct contexts *c, struct rbuf *in, size_t bytes_max, struct spare *out) {
    size_t used = 0, produced = 0, room = out->room < bytes_max ? out->room : bytes_max;
    enum libdeflate_result rc = libdeflate_gzip_decompress_ex(
        c->deflate_in, in->at, rbuf_left(in), out->ptr + out->len, room - out->len, &used, &produced);
    if (rc == LIBDEFLATE_INSUFFICIENT_SPACE) {
        enum status st = zlib_start(c);
        return st ? st : stream_inflate(c, zlib_step, in, bytes_max, out);
    }
    if (rc != LIBDEFLATE_SUCCESS)
        return ST_BAD_RECORD;
    in->at += used;
    out->len += produced;
    return ST_OK;
}

/* Java's rule: what is no gzip header after a member is not looked at. */
static bool gzip_member_follows(const struct rbuf *in) {
    const size_t header_bytes = 10;
    return rbuf_left(in) >= header_bytes && in->at[0] == 0x1f && in->at[1] == 0x8b && in->at[2] == 8;
}

static enum status gzip_inflate(struct contexts *c, struct bytes in, size_t bytes_max, struct spare *out) {
    if (!c->deflate_in && !(c->deflate_in = libdeflate_alloc_decompressor()))
        return ST_NO_MEMORY;
    const uint8_t *tail = in.ptr + in.len;
    size_t declared = in.len < 4 ? 0
                                 : (size_t)tail[-4] | (size_t)tail[-3] << 8 | (size_t)tail[-2] << 16 |
                                       (size_t)tail[-1] << 24;
    enum status st = spare_reserve_below(out, believe(declared, in), bytes_max);
    struct rbuf left = rbuf_of(in);
    do {
        if (!st)
            st = gzip_member(c, &left, bytes_max, out);
    } while (!st && gzip_member_follows(&left));
    return st;
}

static enum status gzip_deflate(struct contexts *c, struct bytes in, struct spare *out) {
    if (!c->deflate_out && !(c->deflate_out = libdeflate_alloc_compressor(GZIP_LEVEL)))
        return ST_NO_MEMORY;
    size_t most = libdeflate_gzip_compress_bound(c->deflate_out, (size_t)in.len);
    enum status st = spare_reserve(out, out->len + most);
    if (st)
        return st;
    out->len += libdeflate_gzip_compress(c->deflate_out, in.ptr, (size_t)in.len, out->ptr + out->len, most);
    return ST_OK;
}

/* ---- snappy ---- */

static enum status snappy_block(const uint8_t *block, size_t len, size_t bytes_max, struct spare *out) {
    size_t declared;
    if (snappy_uncompressed_length((const char *)block, len, &declared) != SNAPPY_OK)
        return ST_BAD_RECORD;
    if (declared > bytes_max - out->len)
        return ST_TOO_BIG;
    if (declared > len * SNAPPY_RATIO_MAX)
        return ST_BAD_RECORD;
    enum status st = spare_reserve_below(out, out->len + declared, bytes_max);
    if (st)
        return st;
    if (snappy_uncompress((const char *)block, len, (char *)out->ptr + out->len, &declared) != SNAPPY_OK)
        return ST_BAD_RECORD;
    out->len += declared;
    return ST_OK;
}

static enum status snappy_inflate(struct contexts *c, struct bytes in, size_t bytes_max, struct spare *out) {
    (void)c;
    if (in.len < XERIAL_HEADER || memcmp(in.ptr, xerial_header, XERIAL_MAGIC_BYTES) != 0)
        return snappy_block(in.ptr, (size_t)in.len, bytes_max, out);
    struct rbuf left = {in.ptr + XERIAL_HEADER, in.ptr + in.len};
    enum status st = spare_reserve_below(out, (size_t)in.len * 2, bytes_max);
    while (!st && rbuf_left(&left) > 0) {
        uint64_t len;
        if (rbuf_be(&left, 4, &len) || len > rbuf_left(&left))
            return ST_BAD_RECORD;
        st = snappy_block(left.at, len, bytes_max, out);
        left.at += len;
    }
    return st;
}

static enum status snappy_deflate(struct contexts *c, struct bytes in, struct spare *out) {
    (void)c;
    size_t left = (size_t)in.len, blocks = left / XERIAL_BLOCK_BYTES + 1, to = out->len;
    size_t most = XERIAL_HEADER + blocks * (4 + snappy_max_compressed_length(XERIAL_BLOCK_BYTES));
    enum status st = spare_reserve(out, to + most);
    if (st)
        return st;
    memcpy(out->ptr + to, xerial_header, XERIAL_HEADER);
    to += XERIAL_HEADER;
    for (const uint8_t *at = in.ptr; left > 0;) {
        size_t part = left < XERIAL_BLOCK_BYTES ? left : XERIAL_BLOCK_BYTES, len = out->room - to - 4;
        if (snappy_compress((const char *)at, part, (char *)out->ptr + to + 4, &len) != SNAPPY_OK)
            return ST_NO_MEMORY;
        be_set(out->ptr + to, 4, len);
        to += 4 + len;
        at += part;
        left -= part;
    }
    out->len = to;
    return ST_OK;
}

/* ---- lz4 ---- */

static enum step lz4_step(struct contexts *c, struct rbuf *in, uint8_t *out, size_t *out_len) {
    size_t used = rbuf_left(in);
    size_t rc = LZ4F_decompress(c->lz4_in, out, out_len, in->at, &used, NULL);
    if (LZ4F_isError(rc))
        return STEP_BAD;
    in->at += used;
    return rc == 0 ? STEP_END : STEP_MORE;
}

/* The start of a frame that Java reads: the standard magic, independent blocks, no dictionary. The library checks the rest. */
static bool lz4_frame_is_plain(struct bytes in) {
    static const uint8_t magic[4] = {0x04, 0x22, 0x4d, 0x18};
    const uint8_t independent = 0x20, dictionary = 0x01;
    return in.len > 4 && memcmp(in.ptr, magic, 4) == 0 &&
           (in.ptr[4] & (independent | dictionary)) == independent;
}

static enum status lz4_inflate(struct contexts *c, struct bytes in, size_t bytes_max, struct spare *out) {
    if (!lz4_frame_is_plain(in))
        return ST_BAD_RECORD;
    if (!c->lz4_in && LZ4F_isError(LZ4F_createDecompressionContext(&c->lz4_in, LZ4F_VERSION)))
        return ST_NO_MEMORY;
    enum status st = spare_reserve_below(out, (size_t)in.len * RATIO_GUESS / 2, bytes_max);
    struct rbuf left = rbuf_of(in);
    if (!st)
        st = stream_inflate(c, lz4_step, &left, bytes_max, out);
    if (!st && rbuf_left(&left) > 0)
        st = ST_BAD_RECORD;
    if (st) {
        /* Not used again: in liblz4 1.9.4 a reset keeps the size that a broken frame declared, and the next frame fails by it. */
        LZ4F_freeDecompressionContext(c->lz4_in);
        c->lz4_in = NULL;
    }
    return st;
}

static enum status lz4_deflate(struct contexts *c, struct bytes in, struct spare *out) {
    (void)c;
    const LZ4F_preferences_t form = {
        .frameInfo = {.blockSizeID = LZ4F_max64KB, .blockMode = LZ4F_blockIndependent}};
    size_t most = LZ4F_compressFrameBound((size_t)in.len, &form);
    enum status st = spare_reserve(out, out->len + most);
    if (st)
        return st;
    size_t rc = LZ4F_compressFrame(out->ptr + out->len, most, in.ptr, (size_t)in.len, &form);
    if (LZ4F_isError(rc))
        return ST_NO_MEMORY;
    out->len += rc;
    return ST_OK;
}

/* ---- zstd ---- */

/*
 * Whole frames into the output itself, again with twice the room when it does not suffice: unlike the stream form this needs no
 * window of its own, so a frame may name a window of any size (levels 20 to 22 do) and costs no more than bytes_max. Trying
 * again costs at most as much as one pass over the final size.
 */
static enum status zstd_inflate(struct contexts *c, struct bytes in, size_t bytes_max, struct spare *out) {
    if (!c->zstd_in && !(c->zstd_in = ZSTD_createDCtx()))
        return ST_NO_MEMORY;
    unsigned long long declared = ZSTD_getFrameContentSize(in.ptr, (size_t)in.len);
    bool is_declared =
        declared != ZSTD_CONTENTSIZE_UNKNOWN && declared != ZSTD_CONTENTSIZE_ERROR && declared > 0;
    if (is_declared && declared > bytes_max)
        return ST_TOO_BIG;
    size_t want = is_declared ? believe(declared, in) : (size_t)in.len * RATIO_GUESS + ROOM_FIRST;
    for (;; want = out->room * 2) {
        enum status st = spare_reserve_below(out, want, bytes_max);
        if (st)
            return st;
        size_t room = out->room < bytes_max ? out->room : bytes_max;
        size_t rc = ZSTD_decompressDCtx(c->zstd_in, out->ptr, room, in.ptr, (size_t)in.len);
        if (!ZSTD_isError(rc)) {
            out->len = rc;
            return ST_OK;
        }
        if (ZSTD_getErrorCode(rc) != ZSTD_error_dstSize_tooSmall)
            return ZSTD_getErrorCode(rc) == ZSTD_error_memory_allocation ? ST_NO_MEMORY : ST_BAD_RECORD;
        if (room == bytes_max)
            return ST_TOO_BIG;
    }
}

static enum status zstd_deflate(struct contexts *c, struct bytes in, struct spare *out) {
    if (!c->zstd_out && !(c->zstd_out = ZSTD_createCCtx()))
        return ST_NO_MEMORY;
    size_t most = ZSTD_compressBound((size_t)in.len);
    enum status st = spare_reserve(out, out->len + most);
    if (st)
        return st;
    size_t rc = ZSTD_compressCCtx(c->zstd_out, out->ptr + out->len, most, in.ptr, (size_t)in.len, ZSTD_LEVEL);
    if (ZSTD_isError(rc))
        return ST_NO_MEMORY;
    out->len += rc;
    return ST_OK;
}

/* ---- all four ---- */

static const struct {
    const char *name;
    enum status (*inflate)(struct contexts *c, struct bytes in, size_t bytes_max, struct spare *out);
    enum status (*deflate)(struct contexts *c, struct bytes in, struct spare *out);
} codecs[] = {
    [CODEC_NONE] = {"none", NULL, NULL},
    [CODEC_GZIP] = {"gzip", gzip_inflate, gzip_deflate},
    [CODEC_SNAPPY] = {"snappy", snappy_inflate, snappy_deflate},
    [CODEC_LZ4] = {"lz4", lz4_inflate, lz4_deflate},
    [CODEC_ZSTD] = {"zstd", zstd_inflate, zstd_deflate},
};

enum status codec_inflate(enum codec codec, struct bytes in, size_t bytes_max, struct spare *out) {
    assert(codec > CODEC_NONE && codec < COUNT_OF(codecs));
    out->len = 0;
    if (in.len <= 0)
        return ST_BAD_RECORD;
    struct contexts *c = contexts_get();
    return c ? codecs[codec].inflate(c, in, bytes_max, out) : ST_NO_MEMORY;
}

enum status codec_deflate(enum codec codec, struct bytes in, struct spare *out) {
    assert(codec > CODEC_NONE && codec < COUNT_OF(codecs));
    struct contexts *c = contexts_get();
    return c ? codecs[codec].deflate(c, in, out) : ST_NO_MEMORY;
}

const char *codec_name(enum codec codec) {
    return (size_t)codec < COUNT_OF(codecs) ? codecs[codec].name : "unknown";
}

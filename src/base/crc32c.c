/*
 * CRC-32C in two forms. The polynomials are bit-reflected: bit 31 of a word is the coefficient of x^0.
 *
 * The instruction has a latency of three cycles and a throughput of one, so the fast form runs three streams side by side
 * and joins them: a stream's state times x^(64 n) is its state after n more words of zeros, and states add by xor.
 */
#include "base/crc32c.h"

#define POLYNOMIAL 0x82f63b78u
#define SLICES     8
#define STREAM_WORDS \
    ((size_t)128) /* longest stream; a longer one costs tables, a shorter one joins too often */

static uint32_t slice[SLICES][256]; /* slice[i][b]: byte b followed by i bytes of zeros */

static void make_slices(void) {
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t v = b;
        for (int bit = 0; bit < 8; bit++)
            v = (v >> 1) ^ ((v & 1) ? POLYNOMIAL : 0);
        slice[0][b] = v;
    }
    for (int i = 1; i < SLICES; i++) {
        for (uint32_t b = 0; b < 256; b++)
            slice[i][b] = slice[0][slice[i - 1][b] & 0xff] ^ (slice[i - 1][b] >> 8);
    }
}

static uint32_t read_le32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

uint32_t crc32c_portable(uint32_t crc, const void *ptr, size_t len) {
    const uint8_t *p = ptr;
    crc = ~crc;
    for (; len >= 8; len -= 8, p += 8) {
        uint32_t low = read_le32(p) ^ crc, high = read_le32(p + 4);
        crc = 0;
        for (int i = 0; i < 4; i++)
            crc ^= slice[7 - i][low >> (8 * i) & 0xff] ^ slice[3 - i][high >> (8 * i) & 0xff];
    }
    for (; len > 0; len--, p++)
        crc = slice[0][(crc ^ *p) & 0xff] ^ (crc >> 8);
    return ~crc;
}

#if defined(__x86_64__)
#include <nmmintrin.h>
#include <wmmintrin.h>

#define HARDWARE __attribute__((target("sse4.2,pclmul")))

/*
 * power[n]: x^(64 n - 33). The product of two reflected words comes out one bit low, and feeding it to the instruction
 * multiplies it by x^32: together the 33 that is missing here.
 */
static uint32_t power[2 * STREAM_WORDS + 1];

static void make_powers(void) {
    uint32_t v = 1; /* x^31 */
    for (size_t n = 1; n < COUNT_OF(power); n++) {
        power[n] = v;
        for (int i = 0; i < 8; i++)
            v = slice[0][v & 0xff] ^ (v >> 8);
    }
}

static inline uint64_t load64(const uint8_t *p) {
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

HARDWARE static inline __m128i times_power(uint64_t state, size_t n) {
    return _mm_clmulepi64_si128(_mm_cvtsi64_si128((int64_t)state), _mm_cvtsi64_si128((int64_t)power[n]), 0);
}

/* The state after 3 n words at p. */
HARDWARE static inline uint64_t three_streams(uint64_t a, const uint8_t *p, size_t n) {
    uint64_t b = 0, c = 0;
    const uint8_t *end = p + 8 * n;
    for (; p < end; p += 8) {
        a = _mm_crc32_u64(a, load64(p));
        b = _mm_crc32_u64(b, load64(p + 8 * n));
        c = _mm_crc32_u64(c, load64(p + 16 * n));
    }
    __m128i ab = _mm_xor_si128(times_power(a, 2 * n), times_power(b, n));
    return c ^ _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(ab));
}

HARDWARE static uint32_t crc32c_hardware(uint32_t crc, const void *ptr, size_t len) {
    const uint8_t *p = ptr;
    uint64_t state = ~crc;
    while (len >= 3 * 8 * 2) { /* below two words a stream, joining costs more than it saves */
        size_t n = len / (3 * 8) < STREAM_WORDS ? len / (3 * 8) : STREAM_WORDS;
        state = three_streams(state, p, n);
        p += 3 * 8 * n;
        len -= 3 * 8 * n;
    }
    for (; len >= 8; len -= 8, p += 8)
        state = _mm_crc32_u64(state, load64(p));
    for (; len > 0; len--, p++)
        state = _mm_crc32_u8((uint32_t)state, *p);
    return ~(uint32_t)state;
}
#endif

static uint32_t (*best)(uint32_t crc, const void *ptr, size_t len) = crc32c_portable;

__attribute__((constructor)) static void choose_best(void) {
    make_slices();
#if defined(__x86_64__)
    make_powers();
    __builtin_cpu_init();
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"))
        best = crc32c_hardware;
#endif
}

uint32_t crc32c(uint32_t crc, const void *ptr, size_t len) {
    return best(crc, ptr, len);
}

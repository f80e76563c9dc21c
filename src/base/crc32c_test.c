#include "base/crc32c.h"

#include "base/mem.h"
#include "testing/test.h"

typedef uint32_t (*crc_fn)(uint32_t crc, const void *ptr, size_t len);
static const crc_fn forms[] = {crc32c, crc32c_portable};

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* RFC 3720, appendix B.4, and the check value that every catalogue of CRCs gives for "123456789". */
TEST(crc32c_gives_the_values_of_rfc_3720) {
    uint8_t zeros[32] = {0}, ones[32], up[32], down[32];
    memset(ones, 0xff, sizeof ones);
    for (uint8_t i = 0; i < 32; i++) {
        up[i] = i;
        down[i] = (uint8_t)(31 - i);
    }
    static const uint8_t scsi_read[48] = {
        0x01, 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, 0x28, [40] = 0x02};
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        CHECK_EQ(forms[i](0, zeros, 32), 0x8a9136aa);
        CHECK_EQ(forms[i](0, ones, 32), 0x62a8ab43);
        CHECK_EQ(forms[i](0, up, 32), 0x46dd794e);
        CHECK_EQ(forms[i](0, down, 32), 0x113fdb5c);
        CHECK_EQ(forms[i](0, scsi_read, 48), 0xd9963a56);
        CHECK_EQ(forms[i](0, "123456789", 9), 0xe3069283);
        CHECK_EQ(forms[i](0, "", 0), 0);
        CHECK_EQ(forms[i](7, "", 0), 7);
    }
}

TEST(the_fast_crc32c_equals_the_tables_at_every_length_and_alignment) {
    uint8_t memory[8 + 700];
    uint64_t seed = 1;
    for (size_t i = 0; i < sizeof memory; i++)
        memory[i] = (uint8_t)next_random(&seed);
    for (size_t len = 0; len <= 700; len++) {
        const uint8_t *p = memory + len % 8;
        uint32_t crc = (uint32_t)next_random(&seed);
        CHECK_EQ(crc32c(crc, p, len), crc32c_portable(crc, p, len));
    }
    for (size_t start = 0; start < 8; start++)
        CHECK_EQ(crc32c(0, memory + start, 700), crc32c_portable(0, memory + start, 700));
}

TEST(the_fast_crc32c_equals_the_tables_on_long_input_of_any_length) {
    const size_t room = 100000;
    uint8_t *memory = mem_take(room);
    CHECK(memory != NULL);
    uint64_t seed = 2;
    for (size_t i = 0; i < room; i++)
        memory[i] = (uint8_t)next_random(&seed);
    for (int i = 0; i < 300; i++) {
        size_t start = next_random(&seed) % 64, len = next_random(&seed) % (room - start);
        CHECK_EQ(crc32c(0, memory + start, len), crc32c_portable(0, memory + start, len));
    }
    mem_free(memory);
}

TEST(a_crc32c_taken_in_parts_is_that_of_the_whole) {
    uint8_t memory[4000];
    uint64_t seed = 3;
    for (size_t i = 0; i < sizeof memory; i++)
        memory[i] = (uint8_t)next_random(&seed);
    for (size_t f = 0; f < COUNT_OF(forms); f++) {
        uint32_t whole = forms[f](0, memory, sizeof memory);
        for (size_t cut = 0; cut <= sizeof memory; cut += 37)
            CHECK_EQ(forms[f](forms[f](0, memory, cut), memory + cut, sizeof memory - cut), whole);
    }
}

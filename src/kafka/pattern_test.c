/* What patterns mean, as RE2/J 1.8 does, and what they may cost. D11-99. */
#include "kafka/pattern.h"

#include <stdlib.h>

#include "base/clock.h"
#include "testing/test.h"

/* Which of the names it matches, as "a,b,"; or what is wrong with it. */
static const char *matched(const char *text) {
    static const char *const names[] = {"orders", "orders-1", "Orders", "orders_eu.1", "a",
                                        "aa",     "payments", "x-y",    "A1",          "__consumer_offsets"};
    static char out[200];
    struct pattern *p;
    const char *problem;
    enum status st = pattern_new(str_of(text), &p, &problem);
    CHECK(st == ST_OK || st == ST_INVALID);
    if (st)
        return problem;
    out[0] = 0;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        bool matches;
        CHECK_EQ(pattern_match(p, str_of(names[i]), &matches), ST_OK);
        if (matches)
            snprintf(out + strlen(out), sizeof out - strlen(out), "%s,", names[i]);
    }
    pattern_free(p);
    return out;
}

TEST(a_pattern_matches_whole_names) {
    static const char *const table[][2] = {
        {"orders-.*", "orders-1,"},
        {"^orders-.*", "orders-1,"},
        {"^orders-.*$", "orders-1,"},
        {"orders", "orders,"},
        {"rders", ""},
        {"", ""},
        {"|", ""},
        {"a|", "a,"},
        {"^^a$$", "a,"},
        {"\\Aa\\z", "a,"},
        {"(?i)ORDERS", "orders,Orders,"},
        {"(?i:ORDERS)[_-].*", "orders-1,orders_eu.1,"},
        {"orders|payments", "orders,payments,"},
        {".*", "orders,orders-1,Orders,orders_eu.1,a,aa,payments,x-y,A1,__consumer_offsets,"},
        {"[^_].*", "orders,orders-1,Orders,orders_eu.1,a,aa,payments,x-y,A1,"},
        {"\\w+", "orders,Orders,a,aa,payments,A1,__consumer_offsets,"},
        {"\\pL+", "orders,Orders,a,aa,payments,"},
        {"[[:alpha:]]+", "orders,Orders,a,aa,payments,"},
        {"\\x{41}1", "A1,"},
        {"orders\\-1", "orders-1,"},
        {"\\Qx-y\\E", "x-y,"},
        {"a{2}", "aa,"},
        {"\xc3\xa9", ""}, /* UTF-8 */
        {".*\xc3\xa9?", "orders,orders-1,Orders,orders_eu.1,a,aa,payments,x-y,A1,__consumer_offsets,"},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++)
        CHECK_TEXT(matched(table[i][0]), table[i][1]);
}

TEST(what_is_wrong_with_a_pattern_is_said_in_kafkas_words) {
    static const char *const table[][2] = {
        {"(", "missing closing )"},
        {")", "regexp/syntax: internal error"},
        {"[a", "missing closing ]"},
        {"[b-a]", "invalid character class range"},
        {"[[:nope:]]", "invalid character class range"},
        {"\\", "trailing backslash at end of expression"},
        {"\\8", "invalid escape sequence"},
        {"*", "missing argument to repetition operator"},
        {"a**", "invalid nested repetition operator"},
        {"a{2,1}", "invalid repeat count"},
        {"a{1001}", "invalid repeat count"},
        {"(?=a)", "invalid or unsupported Perl syntax"},
        {"(?P<n", "invalid named capture"},
        {"(a)\\1", "invalid escape sequence"},
        {"\xff", "invalid UTF-8"}, /* can't be sent by a Java client */
    };
    for (size_t i = 0; i < COUNT_OF(table); i++)
        CHECK_TEXT(matched(table[i][0]), table[i][1]);
}

static char *repeated(const char *text, int32_t bytes) {
    static char out[PATTERN_BYTES_MAX + 2];
    size_t len = strlen(text);
    memset(out, 0, sizeof out);
    for (size_t at = 0; at + len <= (size_t)bytes; at += len)
        memcpy(out + at, text, len);
    return out;
}

TEST(a_pattern_that_would_take_too_much_memory_is_refused) {
    CHECK_TEXT(matched("(a{1000}){1000}"), "invalid repeat count"); /* RE2/J takes these */
    CHECK_TEXT(matched("((a{100}){100}){100}"), "invalid repeat count");
    CHECK_TEXT(matched("\\pL{1000}"), "expression too large");
    CHECK_TEXT(matched(repeated("a{1000}", PATTERN_BYTES_MAX)), "expression too large");
    CHECK_TEXT(matched(repeated("a", PATTERN_BYTES_MAX)), "");
    CHECK_TEXT(matched(repeated("a", PATTERN_BYTES_MAX + 1)), "expression too large");
    CHECK_TEXT(matched(repeated("a|", PATTERN_BYTES_MAX)), "a,");
    CHECK_TEXT(matched(repeated("(", PATTERN_BYTES_MAX)), "missing closing )");
}

/* Random texts of what patterns are made of: each is refused or matches, in bounded time. */
TEST(random_patterns_take_bounded_time) {
    static const char *const atoms[] = {"a",    ".*",     "(",    ")",   "|",  "[a-z]", "[^",   "]",
                                        "{30}", "{1000}", "{,3}", "+",   "*?", "\\pL",  "(?i)", "\\x{",
                                        "^",    "$",      "(?:",  "?",   "\\", "{2,",   "-",    "\xc3",
                                        "\xa9", "(a|b",   ".{9}", "\\Q", "\\E"};
    uint64_t seed = 42;
    int64_t longest_us = 0;
    char text[300];
    for (int i = 0; i < 5000; i++) {
        text[0] = 0;
        for (int n = 0; n < 1 + i % 40; n++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s",
                     atoms[(seed >> 33) % COUNT_OF(atoms)]);
        }
        int64_t began_us = clock_thread_us();
        CHECK(matched(text));
        int64_t took_us = clock_thread_us() - began_us;
        longest_us = took_us > longest_us ? took_us : longest_us;
    }
    printf("longest: %" PRId64 " us\n", longest_us);
    CHECK(longest_us < 2000000);
}

TEST(no_pattern_is_freed) {
    pattern_free(NULL);
}

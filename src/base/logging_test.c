#include "base/logging.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include "base/clock.h"
#include "testing/test.h"

static int real_stderr = -1;
static char lines[16384]; /* what has gone to stderr since capture_start */

static void capture_start(void) {
    char path[] = "/tmp/igk-log-XXXXXX";
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    unlink(path);
    fflush(stderr);
    real_stderr = dup(STDERR_FILENO);
    dup2(fd, STDERR_FILENO);
    close(fd);
}

static void capture_end(void) {
    ssize_t n = pread(STDERR_FILENO, lines, sizeof lines - 1, 0);
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    log_setup(LOG_INFO, false);
    CHECK(n >= 0);
    lines[n] = '\0';
}

/* What stands behind the time and level of a line as text. */
static const char *after_level(void) {
    CHECK(strlen(lines) > 31);
    return lines + 31;
}

TEST(a_text_line_has_time_level_component_message_and_fields) {
    capture_start();
    int64_t before_ms = clock_wall_ms();
    log_line(LOG_INFO, "kafka", "listening", LTEXT("address", "127.0.0.1:9093"), LINT("port", 9093));
    int64_t after_ms = clock_wall_ms();
    capture_end();
    struct tm t = {0};
    int ms = -1;
    const char *rest = strptime(lines, "%Y-%m-%dT%H:%M:%S", &t);
    CHECK(rest != NULL);
    CHECK_EQ(sscanf(rest, ".%3dZ", &ms), 1);
    int64_t at_ms = (int64_t)timegm(&t) * 1000 + ms;
    CHECK(before_ms <= at_ms && at_ms <= after_ms);
    CHECK_TEXT(lines + 23, "Z info  kafka \"listening\" address=127.0.0.1:9093 port=9093\n");
}

TEST(a_json_line_is_one_object_with_the_same_fields) {
    log_setup(LOG_INFO, true);
    capture_start();
    log_line(LOG_WARN, "store", "a \"torn\" tail", LTEXT("path", "/data/a b\\c"), LINT("bytes", -12));
    capture_end();
    CHECK_EQ(lines[strlen(lines) - 1], '\n');
    json_t *line = json_loads(lines, 0, NULL);
    CHECK(line != NULL);
    CHECK_TEXT(json_string_value(json_object_get(line, "level")), "warn");
    CHECK_TEXT(json_string_value(json_object_get(line, "component")), "store");
    CHECK_TEXT(json_string_value(json_object_get(line, "message")), "a \"torn\" tail");
    CHECK_TEXT(json_string_value(json_object_get(line, "path")), "/data/a b\\c");
    CHECK_EQ(json_integer_value(json_object_get(line, "bytes")), -12);
    CHECK_EQ(strlen(json_string_value(json_object_get(line, "time"))), 24);
    CHECK_EQ(json_object_size(line), 6);
    json_decref(line);
}

TEST(our_text_is_quoted_only_where_it_must_be) {
    capture_start();
    log_line(LOG_ERROR, "app", "m", LTEXT("a", "x-1.y:2/z"), LTEXT("b", "two words"), LTEXT("c", ""),
             LTEXT("d", "k=v"));
    capture_end();
    CHECK_TEXT(after_level(), "app \"m\" a=x-1.y:2/z b=\"two words\" c=\"\" d=\"k=v\"\n");
}

TEST(client_text_is_escaped_as_text) {
    static const struct {
        struct str in;
        const char *out;
    } rows[] = {
        {STR("plain"), "\"plain\""},
        {STR("q\"b\\s"), "\"q\\\"b\\\\s\""},
        {STR("a\nforged line\r\t"), "\"a\\nforged line\\r\\t\""},
        {STR("\x1b[31m\x7f"), "\"\\x1b[31m\\x7f\""},
        {{"nul\0in", 6}, "\"nul\\x00in\""},
        {STR("gr\xc3\xbc\xc3\x9f"), "\"gr\xc3\xbc\xc3\x9f\""},
        {STR("\xe2\x82\xac \xf0\x9f\x98\x80"), "\"\xe2\x82\xac \xf0\x9f\x98\x80\""},
        {STR("\xc2\x9b"), "\"\\xc2\\x9b\""},                   /* C1: a terminal's CSI */
        {STR("\xc0\xaf"), "\"\\xc0\\xaf\""},                   /* overlong */
        {STR("\xe0\x80\xaf"), "\"\\xe0\\x80\\xaf\""},          /* overlong */
        {STR("\xed\xa0\x80"), "\"\\xed\\xa0\\x80\""},          /* surrogate */
        {STR("\xf4\x90\x80\x80"), "\"\\xf4\\x90\\x80\\x80\""}, /* above U+10FFFF */
        {STR("\xe2\x82"), "\"\\xe2\\x82\""},                   /* cut short */
        {STR("\xff"), "\"\\xff\""},
        {{NULL, -1}, "\"\""},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        capture_start();
        log_line(LOG_INFO, "kafka", "m", LSTR("client_id", rows[i].in));
        capture_end();
        char expected[128];
        snprintf(expected, sizeof expected, "kafka \"m\" client_id=%s\n", rows[i].out);
        CHECK_TEXT(after_level(), expected);
    }
}

TEST(client_text_of_any_bytes_is_valid_json) {
    for (int b = 0; b < 256; b++) {
        char text[3] = {'a', (char)b, 'z'};
        log_setup(LOG_INFO, true);
        capture_start();
        log_line(LOG_INFO, "kafka", "m", LSTR("client_id", ((struct str){text, 3})));
        capture_end();
        json_t *line = json_loads(lines, JSON_ALLOW_NUL, NULL);
        CHECK(line != NULL);
        const char *value = json_string_value(json_object_get(line, "client_id"));
        if (b < 0x80)
            CHECK_MEM(value, text, 3);
        else
            CHECK_TEXT(value, "a\xef\xbf\xbdz");
        json_decref(line);
    }
}

TEST(client_text_is_cut_to_64_bytes_but_not_inside_a_character) {
    char text[80];
    memset(text, 'x', sizeof text);
    char expected[128];

    capture_start();
    log_line(LOG_INFO, "kafka", "m", LSTR("id", ((struct str){text, 64})));
    capture_end();
    snprintf(expected, sizeof expected, "kafka \"m\" id=\"%.64s\"\n", text);
    CHECK_TEXT(after_level(), expected);

    capture_start();
    log_line(LOG_INFO, "kafka", "m", LSTR("id", ((struct str){text, 65})));
    capture_end();
    snprintf(expected, sizeof expected, "kafka \"m\" id=\"%.64s...\"\n", text);
    CHECK_TEXT(after_level(), expected);

    memcpy(text + 63, "\xc3\xbc", 2);
    capture_start();
    log_line(LOG_INFO, "kafka", "m", LSTR("id", ((struct str){text, 66})));
    capture_end();
    snprintf(expected, sizeof expected, "kafka \"m\" id=\"%.63s...\"\n", text);
    CHECK_TEXT(after_level(), expected);
}

TEST(a_line_that_is_too_long_loses_whole_fields_and_says_so) {
    char text[4000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int json = 0; json < 2; json++) {
        log_setup(LOG_INFO, json);
        capture_start();
        log_line(LOG_INFO, "app", "m", LINT("first", 1), LTEXT("long", text), LTEXT("long2", text),
                 LINT("last", 2));
        capture_end();
        CHECK(strlen(lines) <= 4096);
        CHECK_EQ(lines[strlen(lines) - 1], '\n');
        CHECK(strstr(lines, json ? "\"first\":1" : "first=1") != NULL);
        CHECK(strstr(lines, "long2") == NULL && strstr(lines, "last") == NULL);
        CHECK(strstr(lines, json ? ",\"truncated\":true}\n" : " truncated=true\n") != NULL);
    }
}

TEST(levels_below_the_least_are_not_written) {
    log_setup(LOG_WARN, false);
    CHECK(!log_enabled(LOG_DEBUG) && !log_enabled(LOG_INFO) && log_enabled(LOG_WARN) &&
          log_enabled(LOG_ERROR));
    capture_start();
    log_line(LOG_INFO, "app", "quiet");
    log_line(LOG_WARN, "app", "loud");
    capture_end();
    CHECK_TEXT(lines + 24, " warn  app \"loud\"\n");
}

TEST(a_limited_line_passes_once_a_second_and_tells_how_many_it_held_back) {
    struct log_limit limit = {0};
    int64_t suppressed = -1;
    CHECK(log_limit_pass(&limit, &suppressed));
    CHECK_EQ(suppressed, 0);
    int64_t next_ms = atomic_load(&limit.next_ms);
    CHECK(next_ms > clock_ms() - 1000 && next_ms <= clock_ms() + 1000);

    atomic_store(&limit.next_ms, INT64_MAX); /* the second isn't over */
    CHECK(!log_limit_pass(&limit, &suppressed));
    CHECK(!log_limit_pass(&limit, &suppressed));
    CHECK_EQ(suppressed, 0);

    atomic_store(&limit.next_ms, 0); /* it is */
    CHECK(log_limit_pass(&limit, &suppressed));
    CHECK_EQ(suppressed, 2);
}

TEST(a_limited_line_carries_the_number_held_back) {
    capture_start();
    for (int i = 0; i < 2; i++)
        log_line_limited(LOG_WARN, "net", "refused", LINT("i", i));
    capture_end();
    CHECK_TEXT(after_level(), "net \"refused\" i=0 suppressed=0\n");
}

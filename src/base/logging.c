/* Formats a line in a fixed buffer on the stack, so that logging takes no memory and no lock; the kernel keeps lines apart. */
#include "base/logging.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define LINE_MAX_BYTES   4096 /* PIPE_BUF on Linux: a write of so much to a pipe isn't torn */
#define TAIL_BYTES       32   /* kept free for "truncated", the end of the object and the newline */
#define CLIENT_TEXT_MAX  64
#define LIMIT_PERIOD_MS  1000
#define TEXT_BYTES_PLAIN "-._:/@+,[]*%"

static enum log_level level_least = LOG_INFO;
static bool as_json;

static const char *const level_names[] = {"debug", "info", "warn", "error"};

struct line {
    char bytes[LINE_MAX_BYTES];
    size_t len, max;
    bool full; /* something didn't fit; what was put since is to be taken back */
};

void log_setup(enum log_level least, bool json) {
    level_least = least;
    as_json = json;
}

bool log_enabled(enum log_level level) {
    return level >= level_least;
}

static void line_put(struct line *l, const char *ptr, size_t len) {
    if (l->full || len > l->max - l->len) {
        l->full = true;
        return;
    }
    memcpy(l->bytes + l->len, ptr, len);
    l->len += len;
}

static __attribute__((format(printf, 2, 3))) void line_printf(struct line *l, const char *format, ...) {
    char piece[64];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(piece, sizeof piece, format, args);
    va_end(args);
    line_put(l, piece, (size_t)len < sizeof piece ? (size_t)len : sizeof piece - 1);
}

/* How many bytes the UTF-8 character at p takes. 0: it isn't one, or it is a control character (C0, DEL, C1). */
static size_t character_bytes(const uint8_t *p, size_t left) {
    if (p[0] < 0x80)
        return p[0] >= 0x20 && p[0] != 0x7f ? 1 : 0;
    size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || len > left)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    static const struct {
        uint8_t first, least,
            most; /* bounds of the second byte: overlong forms, surrogates, above U+10FFFF, C1 */
    } second[] = {
        {0xc2, 0xa0, 0xbf}, {0xe0, 0xa0, 0xbf}, {0xed, 0x80, 0x9f}, {0xf0, 0x90, 0xbf}, {0xf4, 0x80, 0x8f}};
    for (size_t i = 0; i < COUNT_OF(second); i++)
        if (p[0] == second[i].first && (p[1] < second[i].least || p[1] > second[i].most))
            return 0;
    return len;
}

static void line_put_escape(struct line *l, uint8_t b) {
    if (b == '\n' || b == '\r' || b == '\t')
        line_printf(l, "\\%c", b == '\n' ? 'n' : b == '\r' ? 'r' : 't');
    else if (!as_json)
        line_printf(l, "\\x%02x", b);
    else if (b < 0x80)
        line_printf(l, "\\u%04x", b);
    else
        line_printf(l, "\\ufffd"); /* JSON has no bytes; what isn't UTF-8 can't be shown */
}

/* text in quotes, at most bytes_max of it, with an ellipsis for the rest. */
static void line_put_quoted(struct line *l, struct str text, size_t bytes_max) {
    const uint8_t *p = (const uint8_t *)text.ptr;
    size_t len = text.len > 0 ? (size_t)text.len : 0;
    line_put(l, "\"", 1);
    for (size_t at = 0; at < len;) {
        size_t one = character_bytes(p + at, len - at);
        if (at + (one > 0 ? one : 1) > bytes_max) {
            line_put(l, "...", 3);
            break;
        }
        if (one == 1 && (p[at] == '"' || p[at] == '\\'))
            line_put(l, "\\", 1);
        if (one > 0)
            line_put(l, text.ptr + at, one);
        else
            line_put_escape(l, p[at]);
        at += one > 0 ? one : 1;
    }
    line_put(l, "\"", 1);
}

static bool is_plain(struct str text) {
    for (int32_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!alnum && (c == '\0' || !strchr(TEXT_BYTES_PLAIN, c)))
            return false;
    }
    return text.len > 0;
}

static void line_put_field(struct line *l, const struct log_field *f) {
    line_put(l, as_json ? ",\"" : " ", as_json ? 2 : 1);
    line_put(l, f->key, strlen(f->key));
    line_put(l, as_json ? "\":" : "=", as_json ? 2 : 1);
    if (f->kind == LOG_FIELD_INT)
        line_printf(l, "%" PRId64, f->number);
    else if (f->kind == LOG_FIELD_CLIENT)
        line_put_quoted(l, f->text, CLIENT_TEXT_MAX);
    else if (!as_json && is_plain(f->text))
        line_put(l, f->text.ptr, (size_t)f->text.len);
    else
        line_put_quoted(l, f->text, LINE_MAX_BYTES);
}

static void line_put_head(struct line *l, enum log_level level, const char *component, const char *message) {
    int64_t now_ms = clock_wall_ms();
    time_t now_s = (time_t)(now_ms / 1000);
    struct tm t;
    gmtime_r(&now_s, &t);
    line_put(l, "{\"time\":\"", as_json ? 9 : 0);
    line_printf(l, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday,
                t.tm_hour, t.tm_min, t.tm_sec, (int)(now_ms % 1000));
    if (as_json) {
        line_printf(l, "\",\"level\":\"%s\",\"component\":\"%s\",\"message\":", level_names[level],
                    component);
    } else {
        line_printf(l, " %-5s %s ", level_names[level], component);
    }
    line_put_quoted(l, str_of(message), LINE_MAX_BYTES / 2);
}

void log_write(enum log_level level, const char *component, const char *message,
               const struct log_field *fields) {
    struct line l;
    l.len = 0;
    l.max = sizeof l.bytes - TAIL_BYTES;
    l.full = false;
    line_put_head(&l, level, component, message);
    for (; fields->kind != LOG_FIELD_END && !l.full; fields++) {
        size_t before = l.len;
        line_put_field(&l, fields);
        if (l.full)
            l.len = before; /* half a value would mislead, and would break the JSON */
    }
    bool cut = l.full;
    l.full = false;
    l.max = sizeof l.bytes;
    if (cut)
        line_put(&l, as_json ? ",\"truncated\":true" : " truncated=true", as_json ? 17 : 15);
    line_put(&l, as_json ? "}\n" : "\n", as_json ? 2 : 1);
    ssize_t n;
    do
        n = write(STDERR_FILENO, l.bytes, l.len);
    while (n < 0 && errno == EINTR); /* any other failure: there is nobody left to tell */
}

bool log_limit_pass(struct log_limit *limit, int64_t *suppressed_out) {
    int64_t now_ms = clock_ms();
    int64_t next_ms = atomic_load_explicit(&limit->next_ms, memory_order_relaxed);
    if (now_ms < next_ms ||
        !atomic_compare_exchange_strong(&limit->next_ms, &next_ms, now_ms + LIMIT_PERIOD_MS)) {
        atomic_fetch_add(&limit->suppressed, 1);
        return false;
    }
    *suppressed_out = atomic_exchange(&limit->suppressed, 0);
    return true;
}

/*
 * Log lines: time level component "message" key=value ..., or one JSON object a line. To stderr, one write a line.
 * base/, wire/, store/ do not log; who ends an error logs it, once. Client text is escaped and cut to 64 bytes. No secrets, no payloads.
 */
#ifndef BASE_LOGGING_H
#define BASE_LOGGING_H

#include "base/base.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

/* Once at start; lines before it go out as key=value at info. */
void log_setup(enum log_level least, bool json);
bool log_enabled(enum log_level level);

/* One key and its value; made by the L* helpers below, ends with a zeroed one. */
struct log_field {
    const char *key;
    enum { LOG_FIELD_END, LOG_FIELD_INT, LOG_FIELD_TEXT, LOG_FIELD_CLIENT } kind;
    int64_t number;
    struct str text;
};
#define LINT(k, v) ((struct log_field){.key = (k), .kind = LOG_FIELD_INT, .number = (int64_t)(v)})
#define LTEXT(k, v) \
    ((struct log_field){.key = (k), .kind = LOG_FIELD_TEXT, .text = str_of(v)}) /* our own text, terminated */
#define LSTR(k, v) \
    ((struct log_field){.key = (k), .kind = LOG_FIELD_CLIENT, .text = (v)}) /* from outside: struct str */

/* log_line(LOG_WARN, "net", "connection refused: too many", LINT("limit", n), LTEXT("peer", p)); Any thread. */
#define log_line(level, component, message, ...)                                  \
    do {                                                                          \
        if (log_enabled(level))                                                   \
            log_write((level), (component), (message),                            \
                      (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){0}}); \
    } while (0)
void log_write(enum log_level level, const char *component, const char *message,
               const struct log_field *fields);

/* At most one line a second from one call site; the next one that passes carries suppressed=N. */
struct log_limit {
    _Atomic int64_t next_ms;
    _Atomic int64_t suppressed;
};
#define log_line_limited(level, component, message, ...)                                         \
    do {                                                                                         \
        static struct log_limit log_limit_here;                                                  \
        int64_t log_suppressed_;                                                                 \
        if (log_enabled(level) && log_limit_pass(&log_limit_here, &log_suppressed_))             \
            log_write((level), (component), (message),                                           \
                      (const struct log_field[]){                                                \
                          __VA_ARGS__ __VA_OPT__(, ) LINT("suppressed", log_suppressed_), {0}}); \
    } while (0)
bool log_limit_pass(struct log_limit *limit, int64_t *suppressed_out);
#endif

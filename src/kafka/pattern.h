/*
 * Regular expressions over names of topics, as consumers subscribe with them (KIP-848). Behind it, in a C++ file: RE2, whose syntax and
 * meaning are those of Kafka's RE2/J, and whose time is linear in the text. No exception comes from here.
 */
#ifndef KAFKA_PATTERN_H
#define KAFKA_PATTERN_H

#include "base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PATTERN_BYTES_MAX 4096 /* of a pattern's text */
#define PATTERN_MEMORY_MAX \
    (512 << 10) /* that one takes, compiled, with all that matching adds to it: RE2 goes without rather */

struct pattern;

/*
 * A pattern that can be matched; text is UTF-8 and copied. Takes at most about PATTERN_MEMORY_MAX, and a millisecond or two.
 * ST_INVALID: problem_out is what is wrong with it, in RE2/J's words, static. ST_NO_MEMORY. Any thread.
 */
enum status pattern_new(struct str text, struct pattern **out, const char **problem_out) MUST_USE;
void pattern_free(struct pattern *p); /* takes NULL */

/* Whether it matches all of the text. ST_NO_MEMORY. Any thread. */
enum status pattern_match(const struct pattern *p, struct str text, bool *out) MUST_USE;

#ifdef __cplusplus
}
#endif
#endif

/* The options of topics, streams and users: which there are, and what they may be. Rows: options.def. */
#ifndef IGGY_SERVER_OPTIONS_H
#define IGGY_SERVER_OPTIONS_H

#include "iggy/message.h"
#include "iggy/tlv.h"

/* As on the wire. */
enum option_flag {
    OPTION_CHANGES = 1, /* an update may set it */
    OPTION_RESETS = 2,  /* and take it back */
    OPTION_SECRET = 4,
    OPTION_READ_ONLY = 8,
    OPTION_CRITICAL = 16,
};

enum option_standard { OPTION_STANDARD_NONE, OPTION_STANDARD_NUMBER, OPTION_STANDARD_TEXT };

struct option {
    uint8_t scope; /* enum iggy_resource */
    uint8_t kind;  /* enum tlv_kind of its value as it is sent back; a TLV_STRING may always come in */
    uint8_t flags; /* enum option_flag */
    uint8_t standard;
    struct iggy_versions on;
    struct str key;
    uint64_t number;      /* the default of OPTION_STANDARD_NUMBER */
    struct str text;      /* of OPTION_STANDARD_TEXT */
    uint64_t least, most; /* of a number; most 0: any */
    const char *choices;  /* "a|b": of a text; NULL: any */
    const char *help;
};

/* The option that a client of this version means by key; NULL: there is none (error 4041). Static memory. Any thread. */
const struct option *option_find(uint8_t scope, uint32_t version, struct str key);

/* All rows, those of other versions and scopes too, in the order of options.def. Static memory. Any thread. */
const struct option *options_all(size_t *count_out);

/* Whether a client of this version knows it. */
static inline bool option_is_on(const struct option *o, uint32_t version) {
    return o->on.first <= version && version <= o->on.last;
}

/*
 * The value of a number's bytes, in the length that a kind has on the wire: 1, 2, 4 or 8, little-endian. Returns the length; 0: the kind is no
 * number of up to 64 bits.
 */
size_t option_number_bytes(uint8_t kind, uint64_t number, uint8_t out[8]);

/*
 * A value that a client has sent for an option whose kind is a number, as that kind or as text of digits (a bool: true, false, 1, 0 too).
 * False: it is neither, or outside the option's limits (error 4042). Texts with units ("7 days", "1 GiB") are for who knows the unit.
 */
bool option_number(const struct option *o, const struct tlv_entry *e, uint64_t *out) MUST_USE;

/* The same for an option whose kind is TLV_STRING: one of its choices, if it has any. The text is a view into e. */
bool option_text(const struct option *o, const struct tlv_entry *e, struct str *out) MUST_USE;
#endif

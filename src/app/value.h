/* What a setting may hold: text into a C value, by kind. */
#ifndef APP_VALUE_H
#define APP_VALUE_H

#include "base/base.h"

/* Each is named in config.def; the comment says what a field of it is. */
enum value_kind {
    VALUE_BOOLEAN,        /* bool; "true" or "false" only */
    VALUE_NUMBER,         /* int64_t; 0 for "auto" where that is the default */
    VALUE_SIZE,           /* int64_t, bytes; "64MiB"; "auto" as NUMBER */
    VALUE_CHOICE,         /* int, index into limits.choices */
    VALUE_TEXT,           /* const char * as all below, NULL when unset */
    VALUE_SECRET,         /* text that is never printed */
    VALUE_NAME,           /* [A-Za-z0-9._-] */
    VALUE_ADDRESS,        /* "IP:port" */
    VALUE_ADDRESS_OR_OFF, /* the same, or "off" */
    VALUE_HOST,           /* host name or IP; blanks around it are cut off */
    VALUE_HOST_AND_PORT,  /* "host:port" */
    VALUE_FILE,           /* path of a file that can be read */
    VALUE_FSYNC,          /* struct value_fsync */
};

struct value_fsync {
    int policy; /* enum store_fsync */
    int64_t interval_ms;
};

struct value_limits {
    int64_t least, most;
    const char *choices; /* "a|b|c" */
};

struct value_type {
    enum value_kind kind;
    const char *standard; /* the default as text; NULL: unset */
    struct value_limits limits;
};

#define VALUE_WHY_BYTES 256

/*
 * Parse text into *field, whose C type follows from the kind.
 * text  changed in place (HOST); texts in *field point into it
 * why   VALUE_WHY_BYTES; on ST_INVALID: "must be ...", what is allowed
 */
enum status value_parse(const struct value_type *type, char *text, void *field, char *why) MUST_USE;

/* Whether the field is a const char * */
bool value_is_text(enum value_kind kind);

/* What stands for a value in --help: "NUMBER", "IP:PORT", "a|b". */
const char *value_placeholder(const struct value_type *type);

/* The IP of an "IP:port" that value_parse took. */
bool address_is_wildcard(const char *address); /* 0.0.0.0 or [::] */
bool address_is_loopback(const char *address);

/* The port of a "host:port" that value_parse took; its host, without brackets, to host_out (terminated, cut to host_bytes). */
int address_split(const char *address, char *host_out, size_t host_bytes);
#endif

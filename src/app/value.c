#include "app/value.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backend/store/store_backend.h"

#define NAME_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
#define BLANKS       " \t\r\n"

/* ---- numbers ---- */

/* A whole number, with nothing around it; false also where it doesn't fit. end: what stands behind it. */
static bool number_read(const char *text, int64_t *out, const char **end) {
    const char *digits = text[0] == '-' || text[0] == '+' ? text + 1 : text;
    if (digits[0] < '0' || digits[0] > '9')
        return false;
    char *rest;
    errno = 0;
    *out = strtoll(text, &rest, 10);
    *end = rest;
    return errno == 0;
}

static bool is_auto(const struct value_type *type, const char *text) {
    return type->standard && strcmp(type->standard, "auto") == 0 && strcmp(text, "auto") == 0;
}

static bool within(const struct value_type *type, int64_t number) {
    return number >= type->limits.least && number <= type->limits.most;
}

static bool parse_number(const struct value_type *type, char *text, void *field) {
    int64_t number = 0;
    const char *end;
    if (!is_auto(type, text) && (!number_read(text, &number, &end) || *end != '\0' || !within(type, number)))
        return false;
    *(int64_t *)field = number;
    return true;
}

static const struct {
    const char *name;
    int64_t bytes;
} units[] = {{"", 1},
             {"B", 1},
             {"KiB", INT64_C(1) << 10},
             {"MiB", INT64_C(1) << 20},
             {"GiB", INT64_C(1) << 30},
             {"TiB", INT64_C(1) << 40},
             {"KB", INT64_C(1000)},
             {"MB", INT64_C(1000000)},
             {"GB", INT64_C(1000000000)},
             {"TB", INT64_C(1000000000000)}};

static bool parse_size(const struct value_type *type, char *text, void *field) {
    int64_t number = 0;
    const char *unit;
    if (is_auto(type, text)) {
        *(int64_t *)field = 0;
        return true;
    }
    if (!number_read(text, &number, &unit))
        return false;
    unit += *unit == ' ' && unit[1] != '\0';
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        int64_t bytes;
        if (strcasecmp(unit, units[i].name) == 0 && !__builtin_mul_overflow(number, units[i].bytes, &bytes) &&
            within(type, bytes)) {
            *(int64_t *)field = bytes;
            return true;
        }
    }
    return false;
}

static bool parse_boolean(const struct value_type *type, char *text, void *field) {
    (void)type;
    *(bool *)field = strcmp(text, "true") == 0;
    return *(bool *)field || strcmp(text, "false") == 0;
}

static bool parse_choice(const struct value_type *type, char *text, void *field) {
    size_t len = strlen(text);
    const char *at = type->limits.choices;
    for (int i = 0; len > 0; i++) {
        size_t choice_len = strcspn(at, "|");
        if (choice_len == len && memcmp(at, text, len) == 0) {
            *(int *)field = i;
            return true;
        }
        if (at[choice_len] == '\0')
            return false;
        at += choice_len + 1;
    }
    return false;
}

static bool parse_fsync(const struct value_type *type, char *text, void *field) {
    (void)type;
    static const struct {
        const char *name;
        enum store_fsync policy;
    } policies[] = {{"acks", FSYNC_ACKS}, {"always", FSYNC_ALWAYS}, {"never", FSYNC_NEVER}};
    struct value_fsync *out = field;
    out->interval_ms = 0;
    for (size_t i = 0; i < COUNT_OF(policies); i++) {
        out->policy = (int)policies[i].policy;
        if (strcmp(text, policies[i].name) == 0)
            return true;
    }
    const char *end;
    out->policy = (int)FSYNC_INTERVAL;
    return strncmp(text, "interval:", 9) == 0 && number_read(text + 9, &out->interval_ms, &end) &&
           *end == '\0' && out->interval_ms >= 1 && out->interval_ms <= INT32_MAX;
}

/* ---- texts ---- */

static bool parse_text(const struct value_type *type, char *text, void *field) {
    *(const char **)field = text;
    return within(type, (int64_t)strlen(text));
}

static bool parse_name(const struct value_type *type, char *text, void *field) {
    return parse_text(type, text, field) && text[strspn(text, NAME_LETTERS)] == '\0';
}

static bool parse_file(const struct value_type *type, char *text, void *field) {
    (void)type;
    *(const char **)field = text;
    return access(text, R_OK) == 0;
}

/* Split "host:port" or "[host]:port" at the last colon. host: 64 KiB at most are looked at by its callers. */
static bool port_is_good(const char *colon) {
    int64_t port;
    const char *end;
    return colon && colon[1] >= '0' && colon[1] <= '9' && number_read(colon + 1, &port, &end) &&
           *end == '\0' && port <= 65535;
}

struct ip {
    int family; /* AF_INET, AF_INET6 */
    uint8_t bytes[16];
};

static bool ip_read(const char *text, size_t len, struct ip *out) {
    char host[INET6_ADDRSTRLEN];
    if (len >= sizeof host)
        return false;
    memcpy(host, text, len);
    host[len] = '\0';
    out->family = memchr(host, ':', len) ? AF_INET6 : AF_INET;
    return inet_pton(out->family, host, out->bytes) == 1;
}

/* The IP of "1.2.3.4:port" or "[::1]:port". */
static bool address_read(const char *text, struct ip *out) {
    const char *colon = strrchr(text, ':');
    if (!port_is_good(colon))
        return false;
    size_t len = (size_t)(colon - text);
    bool bracketed = len > 2 && text[0] == '[' && colon[-1] == ']';
    return ip_read(text + bracketed, bracketed ? len - 2 : len, out) &&
           bracketed == (out->family == AF_INET6);
}

static bool parse_address(const struct value_type *type, char *text, void *field) {
    (void)type;
    struct ip ip;
    *(const char **)field = text;
    return address_read(text, &ip);
}

static bool parse_address_or_off(const struct value_type *type, char *text, void *field) {
    return parse_address(type, text, field) || strcmp(text, "off") == 0;
}

static bool ip_is_wildcard(const struct ip *ip) {
    static const uint8_t zero[16];
    return memcmp(ip->bytes, zero, ip->family == AF_INET ? 4 : 16) == 0;
}

/* A host name, an IPv4 or an IPv6 address that isn't the wildcard (Kafka refuses to advertise that, too). */
static bool host_is_good(const char *text, size_t len) {
    struct ip ip;
    if (ip_read(text, len, &ip))
        return !ip_is_wildcard(&ip);
    for (size_t i = 0; i < len; i++)
        if ((uint8_t)text[i] <= ' ' || text[i] == 0x7f || strchr(":/[]", text[i]))
            return false;
    return len > 0;
}

static bool parse_host(const struct value_type *type, char *text, void *field) {
    text += strspn(text, BLANKS);
    size_t len = strlen(text);
    while (len > 0 && strchr(BLANKS, text[len - 1]))
        text[--len] = '\0';
    *(const char **)field = text;
    return within(type, (int64_t)len) && host_is_good(text, len);
}

static bool parse_host_and_port(const struct value_type *type, char *text, void *field) {
    (void)type;
    struct ip ip;
    *(const char **)field = text;
    const char *colon = strrchr(text, ':');
    return address_read(text, &ip) || (port_is_good(colon) && host_is_good(text, (size_t)(colon - text)) &&
                                       !memchr(text, ':', (size_t)(colon - text)));
}

bool address_is_wildcard(const char *address) {
    struct ip ip;
    return address_read(address, &ip) && ip_is_wildcard(&ip);
}

bool address_is_loopback(const char *address) {
    static const uint8_t one[16] = {[15] = 1};
    struct ip ip;
    return address_read(address, &ip) &&
           (ip.family == AF_INET ? ip.bytes[0] == 127 : memcmp(ip.bytes, one, sizeof one) == 0);
}

int address_split(const char *address, char *host_out, size_t host_bytes) {
    const char *colon = strrchr(address, ':');
    int len = (int)(colon - address);
    bool brackets = address[0] == '[';
    snprintf(host_out, host_bytes, "%.*s", brackets ? len - 2 : len, address + brackets);
    return (int)strtol(colon + 1, NULL, 10);
}

/* ---- by kind ---- */

static const struct kind {
    bool (*parse)(const struct value_type *type, char *text, void *field);
    bool is_text;
    const char *placeholder; /* NULL: the choices */
    const char *allowed;     /* NULL: why_not says it with the limits */
} kinds[] = {
    [VALUE_BOOLEAN] = {parse_boolean, false, "true|false", "must be true or false"},
    [VALUE_NUMBER] = {parse_number, false, "NUMBER", NULL},
    [VALUE_SIZE] = {parse_size, false, "SIZE", NULL},
    [VALUE_CHOICE] = {parse_choice, false, NULL, NULL},
    [VALUE_TEXT] = {parse_text, true, "TEXT", NULL},
    [VALUE_SECRET] = {parse_text, true, "TEXT", NULL},
    [VALUE_NAME] = {parse_name, true, "NAME", NULL},
    [VALUE_ADDRESS] = {parse_address, true, "IP:PORT",
                       "must be an IP address and a port, as 127.0.0.1:9093 or [::1]:9093"},
    [VALUE_ADDRESS_OR_OFF] = {parse_address_or_off, true, "IP:PORT|off",
                              "must be an IP address and a port, as 127.0.0.1:8090 or [::1]:8090, or off"},
    [VALUE_HOST] = {parse_host, true, "HOST",
                    "must be a host name or an IP address that clients can reach, without a port"},
    [VALUE_HOST_AND_PORT] = {parse_host_and_port, true, "HOST:PORT",
                             "must be a host and a port, as iggy.example.com:8090"},
    [VALUE_FILE] = {parse_file, true, "FILE", NULL},
    [VALUE_FSYNC] = {parse_fsync, false, "acks|always|interval:MS|never",
                     "must be acks, always, never or interval:MS with 1 to 2147483647 milliseconds"},
};

/* "must be ..." for the kinds whose limits differ; file_errno: why a file can't be read. */
static void why_not(const struct value_type *type, int file_errno, char *why) {
    const char *or_auto = is_auto(type, "auto") ? ", or auto" : "";
    int64_t least = type->limits.least, most = type->limits.most;
    switch (type->kind) {
    case VALUE_NUMBER:
        if (most == INT64_MAX)
            snprintf(why, VALUE_WHY_BYTES, "must be a whole number, at least %" PRId64 "%s", least, or_auto);
        else
            snprintf(why, VALUE_WHY_BYTES, "must be a whole number from %" PRId64 " to %" PRId64 "%s", least,
                     most, or_auto);
        break;
    case VALUE_SIZE:
        if (most == INT64_MAX)
            snprintf(why, VALUE_WHY_BYTES,
                     "must be a number of bytes, or a size as 64MiB, at least %" PRId64 "%s", least, or_auto);
        else
            snprintf(why, VALUE_WHY_BYTES,
                     "must be a number of bytes, or a size as 64MiB, from %" PRId64 " to %" PRId64 "%s",
                     least, most, or_auto);
        break;
    case VALUE_CHOICE:
        snprintf(why, VALUE_WHY_BYTES, "must be one of %s", type->limits.choices);
        break;
    case VALUE_NAME:
        snprintf(why, VALUE_WHY_BYTES,
                 "must be %" PRId64 " to %" PRId64 " letters, digits, dots, dashes or underscores", least,
                 most);
        break;
    case VALUE_FILE:
        snprintf(why, VALUE_WHY_BYTES, "must be a file that can be read (%s)", strerror(file_errno));
        break;
    default:
        snprintf(why, VALUE_WHY_BYTES, "must be %" PRId64 " to %" PRId64 " bytes long", least, most);
        break;
    }
}

enum status value_parse(const struct value_type *type, char *text, void *field, char *why) {
    if (kinds[type->kind].parse(type, text, field))
        return ST_OK;
    if (kinds[type->kind].allowed)
        snprintf(why, VALUE_WHY_BYTES, "%s", kinds[type->kind].allowed);
    else
        why_not(type, errno, why);
    return ST_INVALID;
}

bool value_is_text(enum value_kind kind) {
    return kinds[kind].is_text;
}

const char *value_placeholder(const struct value_type *type) {
    return kinds[type->kind].placeholder ? kinds[type->kind].placeholder : type->limits.choices;
}

#include "iggy_server/options.h"

#include "base/le.h"

#define IGGY_SCOPE(scope) IGGY_RESOURCE_##scope
#define CHANGES           OPTION_CHANGES
#define RESETS            OPTION_RESETS
#define NUMBER(n)         .standard = OPTION_STANDARD_NUMBER, .number = (n)
#define TEXT(t)           .standard = OPTION_STANDARD_TEXT, .text = {(t), sizeof(t) - 1}
#define NONE              .standard = OPTION_STANDARD_NONE
#define BETWEEN(a, b)     .least = (a), .most = (b)
#define ONE_OF(list)      .choices = (list)
#define ANY               .most = 0
#define ALL \
    { 0, UINT32_MAX }
#define SINCE(v) \
    { (v), UINT32_MAX }
#define BEFORE(v) \
    { 0, (v)-1 }

static const struct option options[] = {
#define OPTION(scope_, key_, kind_, standard_, limits_, flags_, versions_, help_) \
    {.scope = IGGY_SCOPE(scope_),                                                 \
     .key = {#key_, sizeof #key_ - 1},                                            \
     .kind = TLV_##kind_,                                                         \
     standard_,                                                                   \
     limits_,                                                                     \
     .flags = (flags_),                                                           \
     .on = versions_,                                                             \
     .help = (help_)},
#include "iggy_server/options.def"
#undef OPTION
};

const struct option *options_all(size_t *count_out) {
    *count_out = COUNT_OF(options);
    return options;
}

const struct option *option_find(uint8_t scope, uint32_t version, struct str key) {
    for (size_t i = 0; i < COUNT_OF(options); i++)
        if (options[i].scope == scope && option_is_on(&options[i], version) && str_equal(options[i].key, key))
            return &options[i];
    return NULL;
}

size_t option_number_bytes(uint8_t kind, uint64_t number, uint8_t out[8]) {
    static const uint8_t widths[] = {
        [TLV_BOOL] = 1, [TLV_U8] = 1, [TLV_U16] = 2, [TLV_U32] = 4, [TLV_U64] = 8};
    le_set64(out, number);
    return kind < COUNT_OF(widths) ? widths[kind] : 0;
}

static bool digits_parse(struct bytes text, uint64_t *out) {
    uint64_t n = 0;
    for (int32_t i = 0; i < text.len; i++) {
        uint64_t digit = (uint64_t)text.ptr[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, digit, &n))
            return false;
    }
    *out = n;
    return text.len > 0;
}

static bool number_parse(const struct option *o, struct bytes text, uint64_t *out) {
    struct str word = {(const char *)text.ptr, text.len};
    *out = str_equal(word, STR("true"));
    if (o->kind == TLV_BOOL && (*out == 1 || str_equal(word, STR("false"))))
        return true;
    return digits_parse(text, out);
}

bool option_number(const struct option *o, const struct tlv_entry *e, uint64_t *out) {
    uint64_t n = 0;
    bool good = e->value_kind == TLV_STRING ? number_parse(o, e->value, &n)
                                            : e->value_kind == o->kind && tlv_uint(e, &n);
    if (!good || (o->most != 0 && (n < o->least || n > o->most)))
        return false;
    *out = n;
    return true;
}

static bool is_choice(const char *choices, struct str text) {
    for (const char *at = choices;; at++) {
        struct str choice = {at, (int32_t)strcspn(at, "|")};
        if (str_equal(choice, text))
            return true;
        at += choice.len;
        if (*at == 0)
            return false;
    }
}

bool option_text(const struct option *o, const struct tlv_entry *e, struct str *out) {
    struct str text = {(const char *)e->value.ptr, e->value.len};
    if (e->value_kind != TLV_STRING || !tlv_is_typed(e) || (o->choices && !is_choice(o->choices, text)))
        return false;
    *out = text;
    return true;
}

#include "kafka/configs.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <strings.h>

#include "kafka/topic_name.h"

#define NUMBER_BYTES_MAX 64    /* of the text of a number */
#define LIST_BYTES_MAX   16384 /* of a list: what names each of a topic's partitions fits in */

enum config_rule {
    RULE_KEPT,
    RULE_NOT_ZERO,    /* 0 is not well formed */
    RULE_COMPACTION,  /* what is not accepted is, where compaction may be asked for in vain */
    RULE_REPLICATION, /* the same, where any replication factor may be asked for */
    RULE_APPEND_TIME, /* the same, where the backend can put times on records */
    RULE_COMPRESSION, /* the same, where it compresses anew */
    RULE_REPLICAS,    /* "*", or "partition:broker" with commas between */
};

struct config_row {
    struct str name, standard;
    int64_t least, most;
    const char *choices, *accepted; /* with | between; NULL: all */
    const char *server_name;
    struct str documentation;
    enum config_type type;
    enum config_rule rule;
};

static const struct config_row rows[] = {
#define CONFIG(name_, type_, standard_, least_, most_, choices_, accepted_, rule_, server_name_, \
               documentation_)                                                                   \
    {.name = STR(name_),                                                                         \
     .standard = STR(standard_),                                                                 \
     .least = (least_),                                                                          \
     .most = (most_),                                                                            \
     .choices = (choices_),                                                                      \
     .accepted = (accepted_),                                                                    \
     .server_name = (server_name_),                                                              \
     .documentation = STR(documentation_),                                                       \
     .type = CONFIG_##type_,                                                                     \
     .rule = RULE_##rule_},
#include "kafka/configs.def"
#undef CONFIG
};

int32_t topic_configs_count(void) {
    return (int32_t)COUNT_OF(rows);
}

static int row_compare(const void *name, const void *row) {
    return str_compare(*(const struct str *)name, ((const struct config_row *)row)->name);
}

int32_t topic_config_find(struct str name) {
    const struct config_row *row = bsearch(&name, rows, COUNT_OF(rows), sizeof rows[0], row_compare);
    return row ? (int32_t)(row - rows) : -1;
}

/* ---- what is well formed ---- */

static bool is_one_of(struct str s, const char *choices) {
    struct str rest = str_of(choices);
    struct str choice;
    while (str_next_part(&rest, '|', &choice))
        if (str_equal(s, choice))
            return true;
    return false;
}

/* The text of a number, terminated, for the C library. False: it is empty, or too long to be one. */
static bool number_text(struct str s, char text[NUMBER_BYTES_MAX]) {
    if (s.len <= 0 || s.len >= NUMBER_BYTES_MAX)
        return false;
    memcpy(text, s.ptr, (size_t)s.len);
    text[s.len] = '\0';
    return true;
}

/* A decimal number that fills the whole text, with or without a sign, as Java reads one. */
static bool number_parse(struct str s, int64_t *out) {
    char text[NUMBER_BYTES_MAX];
    char *end;
    if (!number_text(s, text))
        return false;
    if (!isdigit((unsigned char)text[0]) && text[0] != '-' && text[0] != '+')
        return false;
    errno = 0;
    *out = strtoll(text, &end, 10);
    return errno == 0 && end == text + s.len;
}

static bool double_parse(struct str s, double *out) {
    char text[NUMBER_BYTES_MAX];
    char *end;
    if (!number_text(s, text))
        return false;
    *out = strtod(text, &end);
    return end == text + s.len;
}

/* "partition:broker" */
static bool is_replica(struct str s) {
    struct str partition;
    int64_t number;
    return str_next_part(&s, ':', &partition) && number_parse(partition, &number) && number_parse(s, &number);
}

/* What is wrong with one value; the texts are Kafka's. */
struct complaint {
    struct arena *arena;
    const struct config_row *row;
    struct str value;
};

static struct str complain(const struct complaint *c, const char *what) {
    return arena_printf(c->arena, "Invalid value %.*s for configuration %s: %s", c->value.len, c->value.ptr,
                        c->row->name.ptr, what);
}

static struct str complain_of_range(const struct complaint *c, const char *bound, int64_t limit) {
    return arena_printf(c->arena, "Invalid value %.*s for configuration %s: Value must be %s %" PRId64,
                        c->value.len, c->value.ptr, c->row->name.ptr, bound, limit);
}

/* Without the value: it is long. */
static struct str complain_of_length(struct arena *a, const struct config_row *row) {
    return arena_printf(a, "Invalid value for configuration %s: The list must have no more than %d bytes",
                        row->name.ptr, LIST_BYTES_MAX);
}

static struct str complain_of_choice(const struct complaint *c, struct str part) {
    struct str list = arena_text(c->arena, str_of(c->row->choices));
    struct str text =
        arena_printf(c->arena, "Invalid value %.*s for configuration %s: String must be one of: ", part.len,
                     part.ptr, c->row->name.ptr);
    struct str choice;
    while (text.ptr && list.ptr && str_next_part(&list, '|', &choice))
        text = arena_printf(c->arena, "%s%.*s%s", text.ptr, choice.len, choice.ptr, list.len < 0 ? "" : ", ");
    return text;
}

/* len 0: nothing is wrong. */
static struct str check_number(const struct complaint *c) {
    const struct config_row *row = c->row;
    int64_t number;
    if (!number_parse(c->value, &number) ||
        (row->type == CONFIG_INT && (number > INT32_MAX || number < INT32_MIN)))
        return complain(c,
                        row->type == CONFIG_INT ? "Not a number of type INT" : "Not a number of type LONG");
    if (row->rule == RULE_NOT_ZERO && (number == 0 || number < row->least || number > row->most))
        return complain(c, "Value must be between 1 and 9 or equal to -1");
    if (number < row->least)
        return complain_of_range(c, "at least", row->least);
    if (number > row->most)
        return complain_of_range(c, "no more than", row->most);
    return STR("");
}

enum status config_int_parse(struct arena *a, const struct backend_setting *from, int32_t *out,
                             struct str *problem_out) {
    const struct config_row row = {.name = from->key, .least = 1, .most = INT32_MAX, .type = CONFIG_INT};
    const struct complaint c = {a, &row, str_trimmed(from->value)};
    int64_t number = 0;
    *problem_out = check_number(&c);
    if (problem_out->len != 0)
        return problem_out->ptr ? ST_INVALID : ST_NO_MEMORY;
    bool ignored = number_parse(c.value, &number); /* it has been */
    (void)ignored;
    *out = (int32_t)number;
    return ST_OK;
}

static struct str check_double(const struct complaint *c) {
    double number;
    if (!double_parse(c->value, &number))
        return complain(c, "Not a number of type DOUBLE");
    if (!(number >= (double)c->row->least))
        return complain_of_range(c, "at least", c->row->least);
    if (number > (double)c->row->most)
        return complain_of_range(c, "no more than", c->row->most);
    return STR("");
}

static struct str check_list(const struct complaint *c) {
    struct str rest = c->value;
    struct str part;
    if (c->value.len > LIST_BYTES_MAX)
        return complain_of_length(c->arena, c->row);
    bool any =
        str_equal(c->value, STR("")) || (c->row->rule == RULE_REPLICAS && str_equal(c->value, STR("*")));
    while (!any && str_next_part(&rest, ',', &part)) {
        part = str_trimmed(part);
        if (c->row->rule == RULE_REPLICAS && !is_replica(part))
            return complain(c, "it must be '*' or a list of [partitionId]:[brokerId]");
        if (c->row->choices && !is_one_of(part, c->row->choices))
            return complain_of_choice(c, part);
    }
    return STR("");
}

static bool is_boolean(struct str s) {
    return (s.len == 4 && strncasecmp(s.ptr, "true", 4) == 0) ||
           (s.len == 5 && strncasecmp(s.ptr, "false", 5) == 0);
}

static struct str check_form(const struct complaint *c) {
    switch (c->row->type) {
    case CONFIG_BOOLEAN:
        return is_boolean(c->value) ? STR("") : complain(c, "Expected value to be either true or false");
    case CONFIG_INT:
    case CONFIG_LONG:
        return check_number(c);
    case CONFIG_DOUBLE:
        return check_double(c);
    case CONFIG_LIST:
        return check_list(c);
    case CONFIG_STRING:
        break;
    }
    return is_one_of(c->value, c->row->choices) ? STR("") : complain_of_choice(c, c->value);
}

/* ---- what is accepted ---- */

static struct str check_accepted(const struct kafka_settings *settings, const struct complaint *c) {
    const struct config_row *row = c->row;
    if (!row->accepted || is_one_of(c->value, row->accepted))
        return STR("");
    if (row->type == CONFIG_BOOLEAN && strncasecmp(c->value.ptr, row->accepted, (size_t)c->value.len) == 0)
        return STR("");
    if (row->rule == RULE_COMPACTION) {
        if (settings->accept_compact)
            return STR("");
        if (str_list_has(c->value, STR("compact")))
            return complain(c,
                            "this server compacts nothing; its setting ACCEPT_COMPACT takes it all the same");
    }
    if (row->rule == RULE_REPLICATION && settings->accept_any_replication)
        return STR("");
    if (row->rule == RULE_APPEND_TIME && settings->append_times)
        return STR("");
    if (row->rule == RULE_COMPRESSION && settings->recodes)
        return STR("");
    return arena_printf(c->arena, "Invalid value %.*s for configuration %s: this server only does %s",
                        c->value.len, c->value.ptr, row->name.ptr, row->accepted);
}

/* The value as it is remembered goes to *out. len 0 of the outcome: nothing is wrong. */
static struct str check_value(const struct kafka_settings *settings, struct arena *a, int32_t row,
                              struct str value, struct backend_setting *out) {
    const struct complaint c = {a, &rows[row], str_trimmed(value)};
    struct str problem = check_form(&c);
    if (problem.ptr && problem.len == 0)
        problem = check_accepted(settings, &c);
    *out = (struct backend_setting){c.row->name, c.value};
    return problem;
}

/* Where each key stands in the table: row -> index of the value that counts, -1: not set. */
static enum status find_rows(struct arena *a, const struct backend_setting *wanted, int32_t count,
                             int32_t *value_of, struct str *problem_out) {
    for (int32_t i = 0; i < topic_configs_count(); i++)
        value_of[i] = -1;
    for (int32_t i = 0; i < count; i++) {
        struct str key = wanted[i].key;
        int32_t row = topic_config_find(key);
        if (row < 0 || wanted[i].value.len < 0) {
            const char *what =
                row < 0 ? "Unknown topic config name" : "Null value not supported for topic configs";
            *problem_out = arena_printf(a, "%s: %.*s", what, key.len, key.ptr);
            return problem_out->ptr ? ST_INVALID : ST_NO_MEMORY;
        }
        value_of[row] = i;
    }
    return ST_OK;
}

enum status topic_configs_check(const struct kafka_settings *settings, struct arena *a,
                                const struct backend_setting *wanted, int32_t wanted_count,
                                struct backend_setting *out, int32_t *out_count, struct str *problem_out) {
    int32_t value_of[COUNT_OF(rows)];
    *out_count = 0;
    enum status st = find_rows(a, wanted, wanted_count, value_of, problem_out);
    if (st)
        return st;
    for (int32_t row = 0; row < topic_configs_count(); row++) {
        if (value_of[row] < 0)
            continue;
        *problem_out = check_value(settings, a, row, wanted[value_of[row]].value, &out[*out_count]);
        if (!problem_out->ptr)
            return ST_NO_MEMORY;
        if (problem_out->len > 0)
            return ST_INVALID;
        (*out_count)++;
    }
    return ST_OK;
}

/* ---- what is changed ---- */

/* What the wishes come to: a change for each row. */
struct draft {
    struct arena *arena;
    const struct config_shown *shown;
    struct backend_setting *wanted; /* to be checked */
    int32_t wanted_count;
    struct backend_change *changes; /* by row */
    bool *named;                    /* by row: there is a change */
};

/* A part of a list, with its place in the two lists together. */
struct list_part {
    struct str text;
    int32_t place;
};

static int32_t parts_count(struct str list) {
    int32_t count = 0;
    for (struct str part; str_next_part(&list, ',', &part);)
        count++;
    return count;
}

static int32_t parts_add(struct list_part *parts, int32_t count, struct str list) {
    for (struct str part; str_next_part(&list, ',', &part); count++)
        parts[count] = (struct list_part){str_trimmed(part), count};
    return count;
}

static int part_compare(const void *a, const void *b) {
    const struct list_part *x = a, *y = b;
    int order = str_compare(x->text, y->text);
    return order != 0 ? order : (x->place > y->place) - (x->place < y->place);
}

/*
 * A list with the parts of another one as well, or without them, each part once, in order. In O(n log n).
 * ptr NULL: no memory.
 */
static struct str list_change(struct arena *a, struct str list, struct str other, bool append) {
    int32_t own = parts_count(list), all = own + parts_count(other), len = 0;
    struct list_part *parts = arena_take_array(a, struct list_part, all);
    struct str *kept = arena_take_array(a, struct str, all);
    char *text = arena_take(a, (size_t)list.len + (size_t)other.len + 1);
    if (!parts || !kept || !text)
        return STR_NULL;
    parts_add(parts, parts_add(parts, 0, list), other);
    qsort(parts, (size_t)all, sizeof *parts, part_compare);
    for (int32_t i = 0, next; i < all; i = next) { /* those of one text; the first of them counts */
        for (next = i + 1; next < all && str_equal(parts[next].text, parts[i].text);)
            next++;
        if (append || parts[next - 1].place < own)
            kept[parts[i].place] = parts[i].text;
    }
    for (int32_t i = 0; i < all; i++) {
        if (kept[i].len <= 0)
            continue;
        if (len > 0)
            text[len++] = ',';
        memcpy(text + len, kept[i].ptr, (size_t)kept[i].len);
        len += kept[i].len;
    }
    return (struct str){text, len};
}

/* ST_INVALID: the setting is no list. */
static enum status draft_change_list(struct draft *d, int32_t row, const struct config_wish *wish,
                                     struct str *problem_out) {
    if (row < 0 || rows[row].type != CONFIG_LIST) {
        *problem_out =
            arena_printf(d->arena, "Can't %s to key %.*s because its type is not LIST.",
                         wish->verb == CONFIG_APPEND ? "APPEND" : "SUBTRACT", wish->key.len, wish->key.ptr);
        return problem_out->ptr ? ST_INVALID : ST_NO_MEMORY;
    }
    const struct config_shown *now = &d->shown[row];
    if (now->value.len + wish->value.len > LIST_BYTES_MAX) {
        *problem_out = complain_of_length(d->arena, &rows[row]);
        return problem_out->ptr ? ST_INVALID : ST_NO_MEMORY;
    }
    struct str value = list_change(d->arena, now->value, wish->value, wish->verb == CONFIG_APPEND);
    d->wanted[d->wanted_count++] = (struct backend_setting){wish->key, value};
    d->changes[row].bound = true;
    d->changes[row].before = now->source == CONFIG_OF_TOPIC ? now->value : STR_NULL;
    return value.ptr ? ST_OK : ST_NO_MEMORY;
}

static enum status draft_add(struct draft *d, const struct config_wish *wish, struct str *problem_out) {
    int32_t row = topic_config_find(wish->key);
    if (wish->verb == CONFIG_APPEND || wish->verb == CONFIG_SUBTRACT)
        return draft_change_list(d, row, wish, problem_out);
    if (wish->verb == CONFIG_SET)
        d->wanted[d->wanted_count++] = (struct backend_setting){wish->key, wish->value};
    else if (row >= 0)
        d->named[row] = true;
    return ST_OK;
}

static enum status draft_init(struct draft *d, struct arena *a, const struct config_shown *shown,
                              int32_t wishes_count) {
    *d = (struct draft){.arena = a,
                        .shown = shown,
                        .wanted = arena_take_array(a, struct backend_setting, wishes_count),
                        .changes = arena_take_array(a, struct backend_change, topic_configs_count()),
                        .named = arena_take_array(a, bool, topic_configs_count())};
    if (!d->wanted || !d->changes || !d->named)
        return ST_NO_MEMORY;
    for (int32_t row = 0; row < topic_configs_count(); row++)
        d->changes[row] =
            (struct backend_change){.key = rows[row].name, .value = STR_NULL, .before = STR_NULL};
    return ST_OK;
}

enum status topic_configs_change(const struct kafka_settings *settings, struct arena *a,
                                 const struct config_shown *shown, const struct config_wishes *wishes,
                                 struct backend_change *out, int32_t *out_count, struct str *problem_out) {
    struct draft d;
    struct backend_setting good[COUNT_OF(rows)];
    int32_t good_count = 0;
    enum status st = draft_init(&d, a, shown, wishes->count);
    *out_count = 0;
    for (int32_t i = 0; !st && i < wishes->count; i++)
        st = draft_add(&d, &wishes->items[i], problem_out);
    if (!st)
        st = topic_configs_check(settings, a, d.wanted, d.wanted_count, good, &good_count, problem_out);
    for (int32_t i = 0; !st && i < good_count; i++) {
        int32_t row = topic_config_find(good[i].key);
        d.named[row] = true;
        d.changes[row].value = good[i].value;
    }
    for (int32_t row = 0; !st && row < topic_configs_count(); row++)
        if (d.named[row] || wishes->replaces)
            out[(*out_count)++] = d.changes[row];
    return st;
}

bool topic_configs_ask_compaction(const struct backend_setting *settings, int32_t count) {
    for (int32_t i = 0; i < count; i++)
        if (str_equal(settings[i].key, STR("cleanup.policy")))
            return str_list_has(settings[i].value, STR("compact"));
    return false;
}

/* ---- what is shown ---- */

/* A number as text; 0 of settings that only some backends have: the table's own. */
static enum status standard_from(struct arena *a, struct config_shown *out, const char *name, int64_t value) {
    int32_t row = topic_config_find(str_of(name));
    if (row < 0 || value == 0)
        return ST_OK;
    out[row].standard = arena_printf(a, "%" PRId64, value);
    return out[row].standard.ptr ? ST_OK : ST_NO_MEMORY;
}

/* Where this server's standard is not Kafka's. */
static enum status standards_of_server(const struct kafka *k, struct arena *a, struct config_shown *out) {
    const struct kafka_settings *s = &k->settings;
    const struct {
        const char *name;
        int64_t value;
    } own[] = {
        {"retention.ms", s->retention_ms},
        {"retention.bytes", s->retention_bytes},
        {"segment.bytes", s->segment_bytes},
        {"segment.ms", s->segment_ms},
        {"max.message.bytes", s->frame_bytes_max}, /* D1-40 */
        {"max.decompressed.message.bytes", s->frame_bytes_max},
    };
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        enum status st = standard_from(a, out, own[i].name, own[i].value);
        if (st)
            return st;
    }
    return ST_OK;
}

enum status topic_configs_show(const struct kafka *k, struct arena *a, const struct backend_setting *own,
                               int32_t own_count, struct config_shown *out) {
    for (int32_t i = 0; i < topic_configs_count(); i++)
        out[i] =
            (struct config_shown){.name = rows[i].name,
                                  .standard = rows[i].standard,
                                  .server_name = rows[i].server_name ? str_of(rows[i].server_name) : STR_NULL,
                                  .documentation = rows[i].documentation,
                                  .type = (int8_t)rows[i].type,
                                  .source = CONFIG_STANDARD};
    enum status st = standards_of_server(k, a, out);
    if (st)
        return st;
    for (int32_t i = 0; i < topic_configs_count(); i++)
        out[i].value = out[i].standard;
    for (int32_t i = 0; i < own_count; i++) {
        int32_t row = topic_config_find(own[i].key);
        if (row < 0)
            continue; /* set by a newer version */
        out[row].value = own[i].value;
        out[row].source = CONFIG_OF_TOPIC;
    }
    return ST_OK;
}

/* ---- the server's own ---- */

struct server_configs {
    struct arena *arena;
    struct config_shown *out;
    int32_t count;
    bool failed; /* no memory */
};

static void server_config_text(struct server_configs *to, const char *name, enum config_type type,
                               struct str value, enum config_source source) {
    to->failed |= !value.ptr;
    to->out[to->count++] = (struct config_shown){.name = str_of(name),
                                                 .value = value,
                                                 .standard = value,
                                                 .server_name = str_of(name),
                                                 .documentation = STR_NULL,
                                                 .type = (int8_t)type,
                                                 .source = (int8_t)source};
}

static void server_config_number(struct server_configs *to, const char *name, enum config_type type,
                                 int64_t value, enum config_source source) {
    server_config_text(to, name, type, arena_printf(to->arena, "%" PRId64, value), source);
}

static void server_config_boolean(struct server_configs *to, const char *name, bool value,
                                  enum config_source source) {
    server_config_text(to, name, CONFIG_BOOLEAN, value ? STR("true") : STR("false"), source);
}

#define SERVER_CONFIGS_MAX 24

enum status server_configs_show(const struct kafka *k, struct arena *a, struct config_shown **out,
                                int32_t *count_out) {
    const struct kafka_settings *s = &k->settings;
    struct server_configs to = {.arena = a,
                                .out = arena_take_array(a, struct config_shown, SERVER_CONFIGS_MAX)};
    if (!to.out)
        return ST_NO_MEMORY;
    struct str listener = arena_printf(a, "PLAINTEXT://%.*s:%d", k->advertised_host.len,
                                       k->advertised_host.ptr, (int)k->advertised_port);
    server_config_text(&to, "advertised.listeners", CONFIG_LIST, listener, CONFIG_OF_SERVER);
    server_config_boolean(&to, "auto.create.topics.enable", s->auto_create_topics, CONFIG_OF_SERVER);
    server_config_number(&to, "broker.id", CONFIG_INT, k->node_id, CONFIG_OF_SERVER);
    server_config_text(&to, "compression.type", CONFIG_STRING, STR("producer"), CONFIG_STANDARD);
    server_config_number(&to, "connections.max.idle.ms", CONFIG_LONG, s->idle_ms, CONFIG_OF_SERVER);
    server_config_number(&to, "default.replication.factor", CONFIG_INT, 1, CONFIG_STANDARD);
    server_config_boolean(&to, "delete.topic.enable", s->backend->ops->controller, CONFIG_STANDARD);
    server_config_text(&to, "log.cleanup.policy", CONFIG_LIST, STR("delete"), CONFIG_STANDARD);
    server_config_text(&to, "log.message.timestamp.type", CONFIG_STRING, STR("CreateTime"), CONFIG_STANDARD);
    if (s->segment_bytes > 0) { /* a backend that keeps records itself */
        server_config_number(&to, "log.retention.bytes", CONFIG_LONG, s->retention_bytes, CONFIG_OF_SERVER);
        server_config_number(&to, "log.retention.ms", CONFIG_LONG, s->retention_ms, CONFIG_OF_SERVER);
        server_config_number(&to, "log.roll.ms", CONFIG_LONG, s->segment_ms, CONFIG_OF_SERVER);
        server_config_number(&to, "log.segment.bytes", CONFIG_INT, s->segment_bytes, CONFIG_OF_SERVER);
    }
    server_config_number(&to, "max.connections", CONFIG_INT, s->connections_max, CONFIG_OF_SERVER);
    server_config_number(&to, "message.max.bytes", CONFIG_INT, s->frame_bytes_max, CONFIG_OF_SERVER);
    server_config_number(&to, "min.insync.replicas", CONFIG_INT, 1, CONFIG_STANDARD);
    server_config_number(&to, "node.id", CONFIG_INT, k->node_id, CONFIG_OF_SERVER);
    server_config_number(&to, "num.partitions", CONFIG_INT, s->partitions_default, CONFIG_OF_SERVER);
    server_config_number(&to, "socket.request.max.bytes", CONFIG_INT, s->frame_bytes_max, CONFIG_OF_SERVER);
    server_config_boolean(&to, "unclean.leader.election.enable", false, CONFIG_STANDARD);
    *out = to.out;
    *count_out = to.count;
    return to.failed ? ST_NO_MEMORY : ST_OK;
}

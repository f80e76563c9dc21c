#include "app/topic_map_file.h"

#include <stdio.h>

#include "app/toml.h"

struct loading {
    struct topic_map *map;
    const char *path;
    char *reason; /* TOPIC_MAP_REASON_BYTES; "" as long as all is well */
    enum status status;
};

static void take_row(void *user, const char *topic, const char *key, const char *text, int line) {
    struct loading *l = user;
    if (l->status)
        return;
    if (!text) {
        snprintf(l->reason, TOPIC_MAP_REASON_BYTES, "%s, line %d: %s%s%s must be a text%s", l->path, line,
                 topic ? topic : "", topic ? "." : "", key,
                 topic ? "; a topic name with dots must be in quotes" : "");
        l->status = ST_INVALID;
        return;
    }
    l->status = topic_map_set(l->map, topic ? str_of(topic) : STR_NULL, str_of(key), str_of(text));
    if (l->status == ST_INVALID)
        snprintf(l->reason, TOPIC_MAP_REASON_BYTES, "%s, line %d: %s", l->path, line, l->map->problem);
}

enum status topic_map_load(const char *path, const char *default_stream, struct topic_map *out,
                           char reason_out[TOPIC_MAP_REASON_BYTES]) {
    struct loading l = {.map = out, .path = path, .reason = reason_out};
    reason_out[0] = '\0';
    if (!path)
        l.status = topic_map_set(out, STR_NULL, STR("default_stream"), str_of(default_stream));
    else if (toml_read_topics(path, take_row, &l, reason_out, TOPIC_MAP_REASON_BYTES) != 0)
        return ST_INVALID;
    if (!l.status)
        l.status = topic_map_seal(out);
    if (l.status == ST_INVALID && !reason_out[0])
        snprintf(reason_out, TOPIC_MAP_REASON_BYTES, "%s: %s", path ? path : "IGGY_KAFKA_IGGY_STREAM",
                 out->problem);
    return l.status;
}

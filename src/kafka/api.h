/* The table of served APIs (api.def). */
#ifndef KAFKA_API_H
#define KAFKA_API_H

#include "wire/kmsg.h"

struct backend;
struct request;

struct api {
    const char *name;
    int16_t key, version_min, version_max, listed_min;
    const struct schema *(*request)(void), *(*response)(void);
    void (*handle)(struct request *r);
    void (*unserved)(struct request *r); /* for versions outside the range; the body is not decoded */
};

/* NULL: not served. */
const struct api *api_find(int16_t key);

/* False: the backend can't do it. Then ApiVersions doesn't list it, and it is closed like a key that nobody serves (B-30, B-34). */
bool api_is_served(const struct api *a, const struct backend *b);

/* All rows, in key order. */
const struct api *api_all(int32_t *count_out);
#endif

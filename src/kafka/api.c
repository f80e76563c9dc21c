#include "kafka/api.h"

#include "kafka/request.h"

static const struct api apis[] = {
#define API(key_, name_, min, max, listed, unserved_) \
    {.name = #name_,                                  \
     .key = (key_),                                   \
     .version_min = (min),                            \
     .version_max = (max),                            \
     .listed_min = (listed),                          \
     .request = name_##_req_schema,                   \
     .response = name_##_res_schema,                  \
     .handle = name_##_handle,                        \
     .unserved = (unserved_)},
#include "kafka/api.def"
#undef API
};

const struct api *api_find(int16_t key) {
    for (size_t i = 0; i < COUNT_OF(apis); i++)
        if (apis[i].key == key)
            return &apis[i];
    return NULL;
}

bool api_is_served(const struct api *a, const struct backend *b) {
    return a->handle != delete_records_handle || b->ops->trim;
}

const struct api *api_all(int32_t *count_out) {
    *count_out = (int32_t)COUNT_OF(apis);
    return apis;
}

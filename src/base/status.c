#include "base/base.h"

const char *status_text(enum status st) {
    static const char *const texts[] = {
#define STATUS(name, text) [ST_##name] = (text),
#include "base/status.def"
#undef STATUS
    };
    return (size_t)st < COUNT_OF(texts) ? texts[st] : "unknown status";
}

/* Bodies of requests; see message.h. */
#include "message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_message(kmsg_request, data, size);
    return 0;
}

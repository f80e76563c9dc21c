/* Bodies of responses; see message.h. */
#include "message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_message(kmsg_response, data, size);
    return 0;
}

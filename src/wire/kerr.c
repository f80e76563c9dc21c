#include "wire/kerr.h"

const char *kerr_name(int16_t code) {
    switch (code) {
#define KERR(number, name, retriable) \
    case (number):                    \
        return #name;
#include "wire/kerr.def"
#undef KERR
    default:
        return "?";
    }
}

bool kerr_is_retriable(int16_t code) {
    switch (code) {
#define KERR(number, name, retriable) \
    case (number):                    \
        return retriable;
#include "wire/kerr.def"
#undef KERR
    default:
        return false;
    }
}

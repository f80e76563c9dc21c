/* Answers as the gateway does with its bridge off: no topic, no records, not a controller (spec D1, D2, D3-6, D4-8, D6-12, D7-5). */
#ifndef BACKEND_STUB_STUB_BACKEND_H
#define BACKEND_STUB_STUB_BACKEND_H

#include "backend/backend.h"

enum status stub_backend_new(struct backend **out) MUST_USE;
void stub_backend_free(struct backend *b); /* takes NULL */
#endif

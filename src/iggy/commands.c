#include "iggy/commands.h"

#include "base/le.h"

#define RESULT_ENTRY_BYTES 8 /* index, code */

static const struct iggy_command commands[] = {
#define BY_CODE IGGY_OP_BY_CODE
#define OPEN    false
#define LOGIN   true
#define ALL \
    { 0, UINT32_MAX }
#define SINCE(v) \
    { (v), UINT32_MAX }
#define BEFORE(v) \
    { 0, (v)-1 }
#define ONLY(v) \
    { (v), (v) }
#define COMMAND(name_, code_, operation_, reply_operation_, versions, access, request_, answer_) \
    {.name = #name_,                                                                             \
     .request = iggy_##request_##_schema,                                                        \
     .answer = iggy_##answer_##_schema,                                                          \
     .on = versions,                                                                             \
     .code = (code_),                                                                            \
     .operation = (operation_),                                                                  \
     .reply_operation = (reply_operation_),                                                      \
     .needs_login = (access)},
#include "iggy/commands.def"
#undef COMMAND
};

static bool is_in(const struct iggy_command *c, uint32_t version) {
    return iggy_version_is_known(version) && c->on.first <= version && version <= c->on.last;
}

const struct iggy_command *iggy_command_by_code(uint32_t code, uint32_t version) {
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        if (commands[i].code == code)
            return is_in(&commands[i], version) ? &commands[i] : NULL;
    return NULL;
}

const struct iggy_command *iggy_command_of(const struct iggy_request_header *r, uint32_t version) {
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        const struct iggy_command *c = &commands[i];
        if (c->operation == r->operation && (c->operation != IGGY_OP_BY_CODE || c->code == r->code))
            return is_in(c, version) ? c : NULL;
    }
    return NULL;
}

enum iggy_plane iggy_command_plane(const struct iggy_command *c) {
    if (c->operation == IGGY_OP_BY_CODE)
        return IGGY_PLANE_READ;
    return c->operation >= 160 ? IGGY_PLANE_PARTITION : IGGY_PLANE_METADATA;
}

void iggy_command_stamp(const struct iggy_command *c, struct iggy_request_header *r) {
    r->operation = c->operation;
    r->code = c->operation == IGGY_OP_BY_CODE ? c->code : 0;
}

/* 64..127 are names that servers have for some of 128..150 among themselves; 138 comes without a section when raw. */
bool iggy_operation_has_result(uint8_t operation) {
    return operation == IGGY_OP_REGISTER || (operation >= 64 && operation <= 150 && operation != 138) ||
           operation == 161 || operation == 162;
}

enum status iggy_reply_open(const struct iggy_reply_header *r, struct bytes body, struct iggy_outcome *out) {
    *out = (struct iggy_outcome){.code = r->status, .payload = BYTES_NULL};
    if (r->status != 0)
        return ST_OK;
    out->payload = body;
    if (!iggy_operation_has_result(r->operation) || (r->operation == IGGY_OP_REGISTER && body.len == 0))
        return ST_OK;
    if (body.len < 4)
        return ST_TRUNCATED;
    uint32_t errors = le_get32(body.ptr);
    out->payload = (struct bytes){body.ptr + 4, body.len - 4};
    if (errors == 0)
        return ST_OK;
    if (errors > (uint32_t)(body.len - 4) / RESULT_ENTRY_BYTES)
        return ST_TRUNCATED;
    out->code = le_get32(body.ptr + 8);
    out->payload = BYTES_NULL;
    return out->code != 0 ? ST_OK : ST_INVALID;
}

enum status iggy_reply_begin(uint8_t operation, uint32_t code, struct wbuf *out) {
    uint8_t section[4 + RESULT_ENTRY_BYTES] = {0};
    if (!iggy_operation_has_result(operation))
        return ST_OK;
    le_set32(section, code != 0);
    le_set32(section + 8, code);
    return wbuf_put(out, section, code != 0 ? sizeof section : 4);
}

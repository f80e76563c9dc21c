/*
 * Which commands there are, how a request names them, which bodies they have, and how an answer says what came of them.
 * Rows: commands.def.
 */
#ifndef IGGY_COMMANDS_H
#define IGGY_COMMANDS_H

#include "base/wbuf.h"
#include "iggy/header.h"
#include "iggy/message.h"

enum iggy_command_code {
#define COMMAND(name, code, ...) IGGY_CMD_##name = (code),
#include "iggy/commands.def"
#undef COMMAND
};

/* Where a request goes. */
enum iggy_plane {
    IGGY_PLANE_READ,      /* answered from state: may be sent again at will, but for polls that commit */
    IGGY_PLANE_METADATA,  /* replicated, once for each request number; the answer has a result section */
    IGGY_PLANE_PARTITION, /* to one partition's log */
};

struct iggy_command {
    const char *name;
    const struct iggy_schema *(*request)(void);
    const struct iggy_schema *(*answer)(void);
    struct iggy_versions on; /* versions that have it */
    uint16_t code;           /* enum iggy_command_code */
    uint8_t operation, reply_operation;
    bool needs_login;
};

/* By enum iggy_command_code; NULL: there is none in this version. Static memory. Any thread. */
const struct iggy_command *iggy_command_by_code(uint32_t code, uint32_t version);

/* What a request header means; NULL as above. A Register is login_password, iggy/login.h tells what it is. Any thread. */
const struct iggy_command *iggy_command_of(const struct iggy_request_header *r, uint32_t version);

enum iggy_plane iggy_command_plane(const struct iggy_command *c);

/* The operation and code that a request for c has in its header. */
void iggy_command_stamp(const struct iggy_command *c, struct iggy_request_header *r);

/* What a reply says. */
struct iggy_outcome {
    uint32_t code;        /* 0: done; else an error, iggy/errors.h, and there is no payload */
    struct bytes payload; /* for iggy_decode with the command's answer; a view into the body */
};

/*
 * The outcome in a reply, from its status, or from the result section where its operation has one.
 * ST_TRUNCATED: the section isn't complete. ST_INVALID: a section whose error is 0.
 */
enum status iggy_reply_open(const struct iggy_reply_header *r, struct bytes body,
                            struct iggy_outcome *out) MUST_USE;

/*
 * Begin the body of a reply: nothing where the operation has no result section, else one that says code (0: done, and
 * the payload follows). An error of an operation without one goes to the header's status instead. Errors as wbuf_put.
 */
enum status iggy_reply_begin(uint8_t operation, uint32_t code, struct wbuf *out) MUST_USE;

/* Whether replies of an operation have a result section (for IGGY_OP_REGISTER: unless the body is empty). */
bool iggy_operation_has_result(uint8_t operation);
#endif

/* What Iggy clients meet: the users of the embedded log, and the listener. */
#ifndef APP_IGGY_SIDE_H
#define APP_IGGY_SIDE_H

#include "app/config.h"

struct backend;
struct budget;
struct iggy_server;
struct loop;
struct op;
struct tls;
struct users;

/* Zeroed: there is none. */
struct iggy_side {
    struct users *users; /* owned, as below */
    struct iggy_server *server;
};

struct iggy_side_parts {
    struct backend *backend; /* backend/store */
    struct tls *tls;         /* NULL: plain */
    struct budget *budget;
    struct loop **loops;
    int loops_count;
};

/*
 * With the embedded log, unless the setting says off: open the users, make root where there are none, and bind. What was made up as root's
 * password goes to stderr, on a line of its own that is no log line. Before the loops start.
 * On failure one error line has said why; release is fine on what was built.
 */
enum status iggy_side_build(struct iggy_side *side, const struct config *c,
                            const struct iggy_side_parts *parts) MUST_USE;

/* The rest has no effect where nothing was built. */
void iggy_side_open(const struct iggy_side *side, const struct config *c);
/* True: done will run once, when it has drained. */
bool iggy_side_stop(struct iggy_side *side, int64_t drain_ms, struct op *done);
void iggy_side_release(struct iggy_side *side);
#endif

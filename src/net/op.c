#include "net/op.h"

#include "net/loop.h"

void op_init(struct op *op, struct loop *loop, op_fn *done) {
    *op = (struct op){.done = done, .loop = loop};
}

void op_start(struct op *op, op_fn *cancel) {
    assert(!op->pending);
    op->pending = true;
    op->cancel = cancel;
}

void op_complete(struct op *op, enum status st) {
    assert(op->pending);
    op->status = st; /* pending and cancel are the loop's to clear: this may be another thread */
    loop_post(op);
}

void op_cancel(struct op *op) {
    if (op->pending && op->cancel)
        op->cancel(op);
}

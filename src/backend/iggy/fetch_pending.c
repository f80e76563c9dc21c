/* Stands in for read.c, watch.c and offsets.c until they are there: nothing can be read. */
#include "backend/iggy/iggy_impl.h"

void bridge_appended(struct bridge *b, struct str name, int32_t partition) {
    (void)b;
    (void)name;
    (void)partition;
}

void iggy_read_op(struct backend *b, struct backend_read *r) {
    (void)b;
    op_start(&r->op, NULL);
    for (int32_t i = 0; i < r->parts_count; i++) {
        r->parts[i].status = r->parts[i].status ? r->parts[i].status : ST_UNAVAILABLE;
        r->parts[i].high_watermark = r->parts[i].start_offset = -1;
    }
    op_complete(&r->op, ST_OK);
}

void iggy_read_release_op(struct backend *b, struct backend_read *r) {
    (void)b;
    (void)r;
}

void iggy_watch_op(struct backend *b, struct backend_watch *w) {
    (void)b;
    op_start(&w->op, NULL);
    op_complete(&w->op, ST_TIMED_OUT);
}

void iggy_offsets_op(struct backend *b, struct backend_offsets *o) {
    (void)b;
    op_start(&o->op, NULL);
    for (int32_t i = 0; i < o->parts_count; i++)
        o->parts[i].status = o->parts[i].status ? o->parts[i].status : ST_UNAVAILABLE;
    op_complete(&o->op, ST_OK);
}

#include "backend/store/store_impl.h"

#include "base/mem.h"

static void job_run(struct work *w) {
    struct store_job *job = container_of(w, struct store_job, work);
    struct op *op = job->op;
    job->run(job->backend, job->call);
    mem_free(job);
    op_complete(op, ST_OK);
}

void store_job_start(struct store_backend *b, struct op *op, void *call,
                     void (*run)(struct store_backend *b, void *call)) {
    op_start(op, NULL);
    struct store_job *job = mem_take_zeroed(1, sizeof *job);
    if (!job) {
        run(b, call);
        op_complete(op, ST_OK);
        return;
    }
    *job = (struct store_job){.backend = b, .op = op, .run = run, .call = call};
    work_submit(&job->work, job_run);
}

#include "kafka/group_views.h"

#include "kafka/errors.h"
#include "net/loop.h"

bool groups_listed(const struct backend_groups *list, struct str group) {
    int32_t low = 0, high = list->groups_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        int order = str_compare(list->groups[middle], group);
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

void groups_list_begin(struct request *r, struct backend_groups *list, op_fn *done) {
    *list = (struct backend_groups){
        .arena = &r->arena, .forget = STR_NULL, .deadline_ms = loop_now_ms(r->loop) + GROUP_VIEWS_MS};
    op_init(&list->op, r->loop, done);
    backend_groups(r->kafka->settings.backend, list);
}

int16_t groups_list_problem(const struct request *r, const struct backend_groups *list) {
    bool keeps_none = request_meets_stub(r) || list->status == ST_UNSUPPORTED;
    return keeps_none ? KERR_NONE : kerr_of_offsets(list->status);
}

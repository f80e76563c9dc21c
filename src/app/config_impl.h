/* What the files config*.c share. */
#ifndef APP_CONFIG_IMPL_H
#define APP_CONFIG_IMPL_H

#include "app/config.h"

/* What must be on for a variable to have an effect. */
enum config_user { EVERYTHING, LOG, EMBEDDED, IGGY, SASL };

struct variable {
    const char *name; /* "BIND_ADDR" */
    struct value_type type;
    size_t offset; /* of its field in struct config */
    enum config_user used_by;
    const char *help;
};
extern const struct variable config_variables[CONFIG_COUNT];

void report_add(struct config_report *report, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* config_names.c: FROM_ENVIRONMENT "IGGY_KAFKA_BIND_ADDR", FROM_OPTION "--bind-addr", FROM_FILE "bind_addr". */
#define CONFIG_PREFIX     "IGGY_KAFKA_"
#define CONFIG_NAME_BYTES 64
void variable_spell(const char *name, enum config_source style, char *out); /* CONFIG_NAME_BYTES */

/* The variable that is spelled so; -1: none. name need not be terminated behind len. */
int variable_find(const char *name, size_t len, enum config_source style);

/* The known name that is nearest to an unknown one, spelled in that style; false: none is near. out: CONFIG_NAME_BYTES */
bool variable_nearest(const char *name, size_t len, enum config_source style, char *out);

/* config_rules.c: what must hold between settings that are fine one by one; fills in what is "auto" and BACKEND. */
void config_apply_rules(struct config *c, struct config_report *report);
#endif

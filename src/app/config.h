/*
 * The configuration: options, then environment, then file, then defaults; all settings stand in config.def.
 * Spec A.1, A.2 and docs/CONFIGURATION.md.
 */
#ifndef APP_CONFIG_H
#define APP_CONFIG_H

#include <stdio.h>

#include "app/value.h"
#include "base/base.h"

/* Where a setting comes from; the later one wins. */
enum config_source { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_OPTION };

enum config_action { CONFIG_RUN, CONFIG_HELP, CONFIG_VERSION, CONFIG_CHECK };

enum config_backend {
    BACKEND_EMBEDDED,
    BACKEND_IGGY,
    BACKEND_STUB
}; /* in the order of config.def's choices */

enum config_variable {
#define VARIABLE(name, ...) CONFIG_##name,
#include "app/config.def"
#undef VARIABLE
    CONFIG_COUNT
};

#define CONFIG_C_TYPE_BOOLEAN        bool
#define CONFIG_C_TYPE_NUMBER         int64_t
#define CONFIG_C_TYPE_SIZE           int64_t
#define CONFIG_C_TYPE_CHOICE         int
#define CONFIG_C_TYPE_TEXT           const char *
#define CONFIG_C_TYPE_SECRET         const char *
#define CONFIG_C_TYPE_NAME           const char *
#define CONFIG_C_TYPE_ADDRESS        const char *
#define CONFIG_C_TYPE_ADDRESS_OR_OFF const char *
#define CONFIG_C_TYPE_HOST           const char *
#define CONFIG_C_TYPE_HOST_AND_PORT  const char *
#define CONFIG_C_TYPE_FILE           const char *
#define CONFIG_C_TYPE_FSYNC          struct value_fsync

struct config {
#define VARIABLE(name, field, kind, ...) \
    CONFIG_C_TYPE_##kind field; /* texts: NULL when unset, else in texts[] */
#include "app/config.def"
#undef VARIABLE
    enum config_action action;
    enum config_source sources[CONFIG_COUNT];
    char *texts[CONFIG_COUNT];    /* owned; what each was set to */
    int file_lines[CONFIG_COUNT]; /* where in file, with FROM_FILE */
    const char *file;             /* of --config; borrowed from argv; NULL: none */
};

/* Sentences for a human, one a line. Those that don't fit are counted only. */
#define CONFIG_REPORT_MAX 24
struct config_report {
    int count;
    char lines[CONFIG_REPORT_MAX][640];
};

/*
 * Read and check the whole configuration. With --help or --version nothing is checked.
 * argv, environment  NULL-terminated, argv[0] is the program; borrowed as long as out
 * out     config_release it, also after an error
 * report  ST_INVALID: all errors, each naming its variable, what it holds (never a secret) and what is allowed
 * ST_NO_MEMORY. Blocks: reads the file of --config.
 */
enum status config_load(char **argv, char **environment, struct config *out,
                        struct config_report *report) MUST_USE;

/* What isn't wrong, but may not be what was meant. Of a loaded configuration.. */
void config_warnings(const struct config *c, struct config_report *report);

void config_print_help(FILE *to);

/* Every setting with its value and where that comes from, as NAME=value; secrets as ***. */
void config_print(const struct config *c, FILE *to);

void config_release(struct config *c); /* fine on zeroed and on released */
#endif

/*
 * options -> environment -> file -> defaults: each names a variable and a text; the strongest text of each variable is
 * then parsed by its kind (value.c), and what is left are the rules between variables (config_rules.c).
 * All errors are collected before it gives up.
 */
#include "app/config.h"

#include <stdarg.h>

#include "app/config_impl.h"
#include "app/toml.h"
#include "base/mem.h"

#define BETWEEN(a, b) \
    { .least = (a), .most = (b) }
#define ONE_OF(list) \
    { .choices = (list) }
#define NO_LIMITS \
    { .least = 0 }
const struct variable config_variables[CONFIG_COUNT] = {
#define VARIABLE(name, field, kind, standard, limits, used_by, help) \
    {#name, {VALUE_##kind, standard, limits}, offsetof(struct config, field), used_by, help},
#include "app/config.def"
#undef VARIABLE
};

struct loading {
    struct config *config;
    struct config_report *report;
    enum status status; /* ST_NO_MEMORY, found where nothing can be returned */
};

void report_add(struct config_report *report, const char *format, ...) {
    if (report->count < CONFIG_REPORT_MAX) {
        va_list args;
        va_start(args, format);
        vsnprintf(report->lines[report->count], sizeof report->lines[0], format, args);
        va_end(args);
    }
    report->count++;
}

/* Keep text for v, unless a stronger source has set it. */
static void loading_set(struct loading *l, int v, enum config_source source, const char *text) {
    struct config *c = l->config;
    if (source < c->sources[v])
        return;
    char *copy = mem_text(str_of(text));
    if (!copy) {
        l->status = ST_NO_MEMORY;
        return;
    }
    mem_free(c->texts[v]);
    c->texts[v] = copy;
    c->sources[v] = source;
}

/* ---- options ---- */

static bool is_option(const char *argument) {
    return argument && strncmp(argument, "--", 2) == 0;
}

/* The first of --help and --version wins over everything, whatever else is wrong. */
static bool find_action(char **argv, struct config *c) {
    for (int i = 1; argv[i]; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "--version") == 0) {
            c->action = argv[i][2] == 'h' ? CONFIG_HELP : CONFIG_VERSION;
            return true;
        }
    }
    return false;
}

/* Take the option at *argument, and its value when that is the next one. Returns how many arguments it took. */
static int take_option(struct loading *l, char **argument) {
    const char *option = argument[0];
    size_t len = strcspn(option, "=");
    const char *value = option[len] == '=' ? option + len + 1 : NULL;
    if (strcmp(option, "--check-config") == 0) {
        l->config->action = CONFIG_CHECK;
        return 1;
    }
    bool is_config = len == 8 && memcmp(option, "--config", len) == 0;
    int v = is_config ? -1 : variable_find(option, len, FROM_OPTION);
    if (!is_config && v < 0) {
        char near[CONFIG_NAME_BYTES];
        bool found = variable_nearest(option, len, FROM_OPTION, near);
        report_add(l->report, "unknown option %.*s; %s%s%s", (int)len, option,
                   found ? "did you mean " : "see --help", found ? near : "", found ? "?" : "");
        return 1;
    }
    int taken = 1;
    if (!value && argument[1] && !is_option(argument[1])) {
        value = argument[1];
        taken = 2;
    }
    if (!value && !is_config && config_variables[v].type.kind == VALUE_BOOLEAN)
        value = "true";
    if (!value)
        report_add(l->report, "option %s needs a value", option);
    else if (is_config)
        l->config->file = value;
    else
        loading_set(l, v, FROM_OPTION, value);
    return taken;
}

static void take_options(struct loading *l, char **argv) {
    for (char **argument = argv + 1; *argument;) {
        if (is_option(*argument)) {
            argument += take_option(l, argument);
        } else {
            report_add(l->report, "unexpected argument \"%s\"; settings are written --name=value, see --help",
                       *argument);
            argument++;
        }
    }
}

/* ---- environment ---- */

/* Kubernetes puts such variables into every container when there is a service named iggy-kafka. */
static bool is_service_link(const char *name) {
    name += strlen(CONFIG_PREFIX);
    return strncmp(name, "SERVICE_", 8) == 0 || strcmp(name, "PORT") == 0 || strncmp(name, "PORT_", 5) == 0;
}

/* The value of an unknown one is not shown: it may be a mistyped password. */
static void report_unknown_variable(struct loading *l, const char *entry, size_t len) {
    char near[CONFIG_NAME_BYTES];
    if (variable_nearest(entry, len, FROM_ENVIRONMENT, near))
        report_add(l->report, "%.*s is not a known variable; did you mean %s?", (int)len, entry, near);
    else if (is_service_link(entry))
        report_add(l->report,
                   "%.*s is not a known variable; it looks like a Kubernetes service link: set "
                   "enableServiceLinks: false",
                   (int)len, entry);
    else
        report_add(l->report, "%.*s is not a known variable; see --help", (int)len, entry);
}

static void take_environment(struct loading *l, char **environment) {
    for (char **entry = environment; *entry; entry++) {
        size_t len = strcspn(*entry, "=");
        if (strncmp(*entry, CONFIG_PREFIX, strlen(CONFIG_PREFIX)) != 0 || (*entry)[len] != '=')
            continue;
        int v = variable_find(*entry, len, FROM_ENVIRONMENT);
        if (v < 0)
            report_unknown_variable(l, *entry, len);
        else
            loading_set(l, v, FROM_ENVIRONMENT, *entry + len + 1);
    }
}

/* ---- file ---- */

static void take_key(void *user, const char *key, const char *text, int line) {
    struct loading *l = user;
    const char *file = l->config->file;
    int v = variable_find(key, strlen(key), FROM_FILE);
    char near[CONFIG_NAME_BYTES];
    if (v < 0 && variable_nearest(key, strlen(key), FROM_FILE, near)) {
        report_add(l->report, "%s, line %d: unknown key %.100s; did you mean %s?", file, line, key, near);
    } else if (v < 0) {
        report_add(l->report, "%s, line %d: unknown key %.100s; see --help", file, line, key);
    } else if (!text) {
        report_add(l->report, "%s, line %d: %s must be a text, a whole number, true or false", file, line,
                   key);
    } else {
        loading_set(l, v, FROM_FILE, text);
        l->config->file_lines[v] = line;
    }
}

static void take_file(struct loading *l) {
    char error[512];
    if (l->config->file && toml_read(l->config->file, take_key, l, error, sizeof error) != 0)
        report_add(l->report, "%s", error);
}

/* ---- values ---- */

/* " (--bind-addr)", " (gateway.toml, line 3)"; nothing for the environment, whose name the message begins with. */
static void origin_text(const struct config *c, int v, char *out, size_t out_bytes) {
    char option[CONFIG_NAME_BYTES];
    out[0] = '\0';
    if (c->sources[v] == FROM_FILE)
        snprintf(out, out_bytes, " (%s, line %d)", c->file, c->file_lines[v]);
    if (c->sources[v] == FROM_OPTION) {
        variable_spell(config_variables[v].name, FROM_OPTION, option);
        snprintf(out, out_bytes, " (%s)", option);
    }
}

/* text for an error line: in quotes, control characters as ?, cut where it is long; nothing at all of a secret. */
static void value_shown(const struct variable *variable, const char *text, char *out, size_t out_bytes) {
    out[0] = '\0';
    if (variable->type.kind == VALUE_SECRET)
        return;
    int len = snprintf(out, out_bytes, "=\"%.100s%s\"", text, strlen(text) > 100 ? "..." : "");
    for (int i = 0; i < len && (size_t)i < out_bytes; i++)
        if ((uint8_t)out[i] < 0x20 || out[i] == 0x7f)
            out[i] = '?';
}

static void parse_values(struct loading *l) {
    struct config *c = l->config;
    for (int v = 0; v < CONFIG_COUNT; v++) {
        const struct variable *variable = &config_variables[v];
        char why[VALUE_WHY_BYTES], shown[128], origin[160];
        if (!c->texts[v])
            continue;
        value_shown(variable, c->texts[v], shown, sizeof shown);
        if (value_parse(&variable->type, c->texts[v], (char *)c + variable->offset, why) == ST_OK)
            continue;
        origin_text(c, v, origin, sizeof origin);
        report_add(l->report, CONFIG_PREFIX "%s%s%s: %s", variable->name, shown, origin, why);
    }
}

enum status config_load(char **argv, char **environment, struct config *out, struct config_report *report) {
    struct loading l = {out, report, ST_OK};
    memset(out, 0, sizeof *out);
    memset(report, 0, sizeof *report);
    if (find_action(argv, out))
        return ST_OK;
    for (int v = 0; v < CONFIG_COUNT; v++)
        if (config_variables[v].type.standard)
            loading_set(&l, v, FROM_DEFAULT, config_variables[v].type.standard);
    take_options(&l, argv);
    take_environment(&l, environment);
    take_file(&l);
    parse_values(&l);
    if (l.status)
        return l.status;
    if (report->count == 0)
        config_apply_rules(out, report);
    return report->count == 0 ? ST_OK : ST_INVALID;
}

void config_release(struct config *c) {
    for (int v = 0; v < CONFIG_COUNT; v++) {
        mem_free(c->texts[v]);
        c->texts[v] = NULL;
    }
}

/* --help and --check-config. */
#include "app/config_impl.h"

static void print_variable(const struct variable *variable, FILE *to) {
    char option[CONFIG_NAME_BYTES];
    variable_spell(variable->name, FROM_OPTION, option);
    fprintf(to, "  %s=%s, " CONFIG_PREFIX "%s", option, value_placeholder(&variable->type), variable->name);
    if (variable->type.standard)
        fprintf(to, " [%s]", variable->type.standard);
    fprintf(to, "\n      %s\n", variable->help);
}

void config_print_help(FILE *to) {
    fputs("Usage: iggy-gateway-kafka [--OPTION=VALUE]...\n"
          "\n"
          "A server for Kafka clients. Without any option it keeps a durable log in ./iggy-kafka-data.\n"
          "\n"
          "Each setting is an option, an environment variable, and a key of the TOML file of --config, as\n"
          "--bind-addr, IGGY_KAFKA_BIND_ADDR, bind_addr. The first that sets it counts: option, environment, "
          "file,\n"
          "default (in brackets). A size is a number of bytes, or has a unit, as 64MiB.\n"
          "\n"
          "  --config=FILE     read settings from this file, too\n"
          "  --check-config    check the settings, print them and exit: 0 good, 2 not\n"
          "  --version         print the version and exit\n"
          "  --help            print this and exit\n",
          to);
    int v = 0;
#define GROUP(title)  fprintf(to, "\n%s\n", title);
#define VARIABLE(...) print_variable(&config_variables[v++], to);
#include "app/config.def"
#undef VARIABLE
    fputs("\nExit codes: 0 after SIGINT or SIGTERM, 1 it could not start or go on, 2 the settings are not "
          "good.\n",
          to);
}

void config_print(const struct config *c, FILE *to) {
    for (int v = 0; v < CONFIG_COUNT; v++) {
        const struct variable *variable = &config_variables[v];
        if (!c->texts[v])
            continue;
        char origin[CONFIG_NAME_BYTES] = "default";
        if (c->sources[v] == FROM_FILE)
            snprintf(origin, sizeof origin, "file, line %d", c->file_lines[v]);
        if (c->sources[v] == FROM_ENVIRONMENT)
            snprintf(origin, sizeof origin, "environment");
        if (c->sources[v] == FROM_OPTION)
            variable_spell(variable->name, FROM_OPTION, origin);
        bool secret = variable->type.kind == VALUE_SECRET;
        fprintf(to, CONFIG_PREFIX "%s=%s (%s)\n", variable->name, secret ? "***" : c->texts[v], origin);
    }
}

/* Arguments, and the exit code: 0 good, 1 it could not start or go on, 2 the settings are not good. */
#include <stdio.h>
#include <unistd.h>

#include "app/config.h"
#include "app/server.h"
#include "base/logging.h"

#define EXIT_SETTINGS 2

static int refuse(enum status st, const struct config_report *report) {
    for (int i = 0; i < report->count && i < CONFIG_REPORT_MAX; i++)
        fprintf(stderr, "iggy-gateway-kafka: %s\n", report->lines[i]);
    if (report->count > CONFIG_REPORT_MAX)
        fprintf(stderr, "iggy-gateway-kafka: and %d more\n", report->count - CONFIG_REPORT_MAX);
    if (st == ST_INVALID)
        return EXIT_SETTINGS;
    fprintf(stderr, "iggy-gateway-kafka: can't read the settings: %s\n", status_text(st));
    return 1;
}

static int check(const struct config *config, struct config_report *report) {
    config_print(config, stdout);
    config_warnings(config, report);
    for (int i = 0; i < report->count && i < CONFIG_REPORT_MAX; i++)
        fprintf(stderr, "iggy-gateway-kafka: warning: %s\n", report->lines[i]);
    return 0;
}

static int run(const struct config *config, struct config_report *report) {
    log_setup((enum log_level)config->log_level, config->log_format == 1);
    config_warnings(config, report);
    for (int i = 0; i < report->count && i < CONFIG_REPORT_MAX; i++)
        log_line(LOG_WARN, "app", report->lines[i]);
    return server_run(config);
}

int main(int argc, char **argv) {
    static struct config_report report;
    static struct config config;
    char *none[] = {"iggy-gateway-kafka", NULL};
    int code = 0;
    enum status st = config_load(argc > 0 ? argv : none, environ, &config, &report);
    if (st) {
        code = refuse(st, &report);
    } else if (config.action == CONFIG_HELP) {
        config_print_help(stdout);
    } else if (config.action == CONFIG_VERSION) {
        puts("iggy-gateway-kafka " KGW_VERSION
             ": a server for Kafka clients on Iggy's model, with an embedded log");
    } else if (config.action == CONFIG_CHECK) {
        code = check(&config, &report);
    } else {
        code = run(&config, &report);
    }
    config_release(&config);
    return code;
}

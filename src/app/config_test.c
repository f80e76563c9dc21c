#include "app/config.h"

#include <stdlib.h>
#include <unistd.h>

#include "app/config_impl.h"
#include "backend/store/store_backend.h"
#include "base/mem.h"
#include "testing/test.h"

static struct config config;
static struct config_report report;
static char *no_texts[] = {NULL};

/* Load from up to six option and environment texts; NULL: that source is empty. */
static enum status load(char *const *options, char *const *environment) {
    config_release(&config);
    char *argv[8] = {"gateway"};
    for (int i = 0; options && options[i]; i++)
        argv[i + 1] = options[i];
    return config_load(argv, environment ? (char **)environment : no_texts, &config, &report);
}
static enum status load_environment(const char *entry) {
    char *environment[] = {(char *)entry, NULL};
    return load(NULL, environment);
}
static enum status load_option(const char *option) {
    char *options[] = {(char *)option, NULL};
    return load(options, NULL);
}

static const char *file_with(const char *text) {
    static char path[256];
    snprintf(path, sizeof path, "%s/gateway.toml", test_dir());
    FILE *f = fopen(path, "w");
    CHECK(f != NULL);
    fputs(text, f);
    fclose(f);
    return path;
}
static enum status load_file(const char *text) {
    char *options[] = {"--config", (char *)file_with(text), NULL};
    return load(options, NULL);
}

static bool reported(const char *line) {
    for (int i = 0; i < report.count && i < CONFIG_REPORT_MAX; i++)
        if (strcmp(report.lines[i], line) == 0)
            return true;
    for (int i = 0; i < report.count && i < CONFIG_REPORT_MAX; i++)
        print_message("instead of \"%s\": %s\n", line, report.lines[i]);
    return false;
}

TEST(the_defaults_are_those_of_the_specification) { /* A-1..A-25 */
    CHECK_EQ(load(NULL, NULL), ST_OK);
    CHECK_EQ(config.action, CONFIG_RUN);
    CHECK_TEXT(config.bind_addr, "127.0.0.1:9093");
    CHECK(config.advertised_host == NULL);
    CHECK_EQ(config.advertised_port, 0);
    CHECK_EQ(config.max_connections, 1024);
    CHECK_EQ(config.max_frame_size, 8388608);
    CHECK_EQ(config.idle_timeout_secs, 600);
    CHECK_EQ(config.read_timeout_secs, 15);
    CHECK_EQ(config.write_timeout_secs, 10);
    CHECK_EQ(config.shutdown_drain_timeout_secs, 25);
    CHECK_EQ(config.instance_id, 0);
    CHECK(!config.sasl_enabled);
    CHECK_EQ(config.pre_auth_timeout_secs, 15);
    CHECK_EQ(config.max_concurrent_authentications, 4);
    CHECK_TEXT(config.iggy_addr, "127.0.0.1:8090");
    CHECK_TEXT(config.iggy_username, "iggy");
    CHECK(config.iggy_password == NULL);
    CHECK_TEXT(config.iggy_stream, "kafka");
    CHECK(config.topic_map_path == NULL);
    CHECK_EQ(config.iggy_max_message_size, 64 << 20);
    CHECK_EQ(config.produce_sessions, 256);
    CHECK_EQ(config.produce_session_idle_secs, 600);
    CHECK(!config.iggy_tls_enabled);
    CHECK(config.iggy_tls_domain == NULL && config.iggy_tls_ca_file == NULL);
}

TEST(a_newcomer_gets_the_embedded_log) { /* decisions, the product 1-3 */
    CHECK_EQ(load(NULL, NULL), ST_OK);
    CHECK_EQ(config.backend, BACKEND_EMBEDDED);
    CHECK_TEXT(config.data_dir, "./iggy-kafka-data");
    CHECK_EQ(config.fsync.policy, FSYNC_ACKS);
    CHECK_EQ(config.segment_bytes, 1 << 30);
    CHECK_EQ(config.segment_ms, INT64_C(7) * 24 * 3600 * 1000);
    CHECK_EQ(config.retention_ms, -1);
    CHECK_EQ(config.offsets_retention_minutes, 7 * 24 * 60);
    CHECK_EQ(config.retention_bytes, -1);
    CHECK(!config.auto_create_topics && !config.accept_compact && !config.accept_any_replication);
    CHECK_EQ(config.default_partitions, 1);
    CHECK_EQ(config.max_in_flight, 16);
    CHECK(config.threads >= 1);
    CHECK(config.memory_budget > 0 && config.memory_budget <= INT64_C(2) << 30);
    CHECK_EQ(config.log_level, 1); /* info */
    CHECK_EQ(config.log_format, 0);
    CHECK_TEXT(config.iggy_listen_addr, "127.0.0.1:8090");
}

TEST(an_option_beats_the_environment_beats_the_file_beats_the_default) {
    const char *path = file_with("max_connections = 3\nmax_in_flight = 3\nthreads = 3\n");
    char *options[] = {"--config", (char *)path, "--max-connections=1", NULL};
    char *environment[] = {"IGGY_KAFKA_MAX_CONNECTIONS=2", "IGGY_KAFKA_MAX_IN_FLIGHT=2", NULL};
    CHECK_EQ(load(options, environment), ST_OK);
    CHECK_EQ(config.max_connections, 1);
    CHECK_EQ(config.max_in_flight, 2);
    CHECK_EQ(config.threads, 3);
    CHECK_EQ(config.default_partitions, 1);
    CHECK_EQ(config.sources[CONFIG_MAX_CONNECTIONS], FROM_OPTION);
    CHECK_EQ(config.sources[CONFIG_MAX_IN_FLIGHT], FROM_ENVIRONMENT);
    CHECK_EQ(config.sources[CONFIG_THREADS], FROM_FILE);
    CHECK_EQ(config.sources[CONFIG_DEFAULT_PARTITIONS], FROM_DEFAULT);
}

TEST(what_a_stronger_source_replaces_need_not_be_good) {
    char *options[] = {"--threads=2", NULL}, *environment[] = {"IGGY_KAFKA_THREADS=many", NULL};
    CHECK_EQ(load(options, environment), ST_OK);
    CHECK_EQ(config.threads, 2);
}

TEST(an_option_takes_its_value_after_a_space_or_an_equals_sign_and_the_last_one_counts) {
    char *options[] = {"--bind-addr",    "127.0.0.1:1",          "--cluster-id=a",
                       "--cluster-id=b", "--auto-create-topics", NULL};
    CHECK_EQ(load(options, NULL), ST_OK);
    CHECK_TEXT(config.bind_addr, "127.0.0.1:1");
    CHECK_TEXT(config.cluster_id, "b");
    CHECK(config.auto_create_topics); /* a switch alone means true */
    char *off[] = {"--auto-create-topics", "false", "--accept-compact", "--threads=1", NULL};
    CHECK_EQ(load(off, NULL), ST_OK);
    CHECK(!config.auto_create_topics && config.accept_compact);
}

TEST(every_variable_is_an_option_a_variable_and_a_key) { /* decisions, the product 5 */
    for (int v = 0; v < CONFIG_COUNT; v++) {
        char name[CONFIG_NAME_BYTES];
        for (enum config_source style = FROM_FILE; style <= FROM_OPTION; style++) {
            variable_spell(config_variables[v].name, style, name);
            CHECK_EQ(variable_find(name, strlen(name), style), v);
        }
    }
    char name[CONFIG_NAME_BYTES];
    variable_spell("MAX_IN_FLIGHT", FROM_OPTION, name);
    CHECK_TEXT(name, "--max-in-flight");
    variable_spell("MAX_IN_FLIGHT", FROM_ENVIRONMENT, name);
    CHECK_TEXT(name, "IGGY_KAFKA_MAX_IN_FLIGHT");
    variable_spell("MAX_IN_FLIGHT", FROM_FILE, name);
    CHECK_TEXT(name, "max_in_flight");
}

TEST(a_value_that_is_not_allowed_is_named_with_what_is) { /* */
    static const struct {
        const char *entry, *error;
    } rows[] = {
#define MUST(entry, value, what) \
    {"IGGY_KAFKA_" entry "=" value, "IGGY_KAFKA_" entry "=\"" value "\": must be " what}
        MUST("BIND_ADDR", "localhost:9093", "an IP address and a port, as 127.0.0.1:9093 or [::1]:9093"),
        MUST("BIND_ADDR", "127.0.0.1", "an IP address and a port, as 127.0.0.1:9093 or [::1]:9093"),
        MUST("BIND_ADDR", "127.0.0.1:65536", "an IP address and a port, as 127.0.0.1:9093 or [::1]:9093"),
        MUST("BIND_ADDR", "127.0.0.1:-1", "an IP address and a port, as 127.0.0.1:9093 or [::1]:9093"),
        MUST("BIND_ADDR", "127.0.0.1:", "an IP address and a port, as 127.0.0.1:9093 or [::1]:9093"),
        MUST("BIND_ADDR", "::1:9093", "an IP address and a port, as 127.0.0.1:9093 or [::1]:9093"),
        MUST("BIND_ADDR", "[127.0.0.1]:9093", "an IP address and a port, as 127.0.0.1:9093 or [::1]:9093"),
        MUST("BIND_ADDR", "", "an IP address and a port, as 127.0.0.1:9093 or [::1]:9093"),
        MUST("ADVERTISED_HOST", "  ", "a host name or an IP address that clients can reach, without a port"),
        MUST("ADVERTISED_HOST", "broker:9092",
             "a host name or an IP address that clients can reach, without a port"),
        MUST("ADVERTISED_HOST", "0.0.0.0",
             "a host name or an IP address that clients can reach, without a port"),
        MUST("ADVERTISED_HOST", "::", "a host name or an IP address that clients can reach, without a port"),
        MUST("ADVERTISED_HOST", "a b", "a host name or an IP address that clients can reach, without a port"),
        MUST("ADVERTISED_PORT", "0", "a whole number from 1 to 65535"),
        MUST("MAX_CONNECTIONS", "0", "a whole number from 1 to 2147483647"),
        MUST("MAX_CONNECTIONS", "ten", "a whole number from 1 to 2147483647"),
        MUST("MAX_CONNECTIONS", "10x", "a whole number from 1 to 2147483647"),
        MUST("MAX_CONNECTIONS", " 10", "a whole number from 1 to 2147483647"),
        MUST("MAX_CONNECTIONS", "", "a whole number from 1 to 2147483647"),
        MUST("MAX_CONNECTIONS", "auto", "a whole number from 1 to 2147483647"),
        MUST("MAX_CONNECTIONS", "99999999999999999999", "a whole number from 1 to 2147483647"),
        MUST("MAX_FRAME_SIZE", "0", "a number of bytes, or a size as 64MiB, from 1 to 2147483647"),
        MUST("MAX_FRAME_SIZE", "2GiB", "a number of bytes, or a size as 64MiB, from 1 to 2147483647"),
        MUST("MAX_FRAME_SIZE", "1XB", "a number of bytes, or a size as 64MiB, from 1 to 2147483647"),
        MUST("MAX_FRAME_SIZE", "1 ", "a number of bytes, or a size as 64MiB, from 1 to 2147483647"),
        MUST("RETENTION_BYTES", "9000000TiB",
             "a number of bytes, or a size as 64MiB, at least -1"), /* over 2^63 */
        MUST("MEMORY_BUDGET", "1KiB", "a number of bytes, or a size as 64MiB, at least 1048576, or auto"),
        MUST("IDLE_TIMEOUT_SECS", "0", "a whole number from 1 to 2147483647"),
        MUST("READ_TIMEOUT_SECS", "0", "a whole number from 1 to 2147483647"),
        MUST("WRITE_TIMEOUT_SECS", "0", "a whole number from 1 to 2147483647"),
        MUST("SHUTDOWN_DRAIN_TIMEOUT_SECS", "-1", "a whole number from 0 to 2147483647"),
        MUST("INSTANCE_ID", "65536", "a whole number from 0 to 65535"),
        MUST("PRE_AUTH_TIMEOUT_SECS", "0", "a whole number from 1 to 2147483647"),
        MUST("MAX_CONCURRENT_AUTHENTICATIONS", "0", "a whole number from 1 to 2147483647"),
        MUST("PRODUCE_SESSIONS", "-1", "a whole number from 0 to 2147483647"),
        MUST("PRODUCE_SESSION_IDLE_SECS", "0", "a whole number from 1 to 2147483647"),
        MUST("IGGY_ADDR", "iggy", "a host and a port, as iggy.example.com:8090"),
        MUST("IGGY_ADDR", ":8090", "a host and a port, as iggy.example.com:8090"),
        MUST("IGGY_STREAM", "", "1 to 255 bytes long"),
        MUST("IGGY_USERNAME", "", "1 to 255 bytes long"),
        MUST("TOPIC_MAP_PATH", "/no/such.toml", "a file that can be read (No such file or directory)"),
        MUST("IGGY_TLS_CA_FILE", "", "a file that can be read (No such file or directory)"),
        MUST("SASL_ENABLED", "TRUE", "true or false"),
        MUST("SASL_ENABLED", "1", "true or false"),
        MUST("SASL_ENABLED", "", "true or false"),
        MUST("BACKEND", "kafka", "one of embedded|iggy|stub"),
        MUST("BACKEND", "", "one of embedded|iggy|stub"),
        MUST("BACKEND", "embedded|iggy", "one of embedded|iggy|stub"),
        MUST("FSYNC", "sometimes", "acks, always, never or interval:MS with 1 to 2147483647 milliseconds"),
        MUST("FSYNC", "interval:0", "acks, always, never or interval:MS with 1 to 2147483647 milliseconds"),
        MUST("FSYNC", "interval:5s", "acks, always, never or interval:MS with 1 to 2147483647 milliseconds"),
        MUST("CLUSTER_ID", "a b", "1 to 255 letters, digits, dots, dashes or underscores"),
        MUST("DEFAULT_PARTITIONS", "1001", "a whole number from 1 to 1000"),
        MUST("THREADS", "0", "a whole number from 1 to 256, or auto"),
        MUST("SEGMENT_MS", "0", "a whole number, at least 1"),
        MUST("RETENTION_MS", "-2", "a whole number, at least -1"),
        MUST("OFFSETS_RETENTION_MINUTES", "0", "a whole number from 1 to 2147483647"),
        MUST("IGGY_LISTEN_ADDR", "on", "an IP address and a port, as 127.0.0.1:8090 or [::1]:8090, or off"),
        MUST("IGGY_LISTEN_VERSIONS", "0.13", "one of any|0.11|0.12"),
        MUST("ROOT_USERNAME", "me", "3 to 50 bytes long"),
        MUST("LOG_LEVEL", "trace", "one of debug|info|warn|error"),
        MUST("LOG_FORMAT", "xml", "one of text|json"),
        MUST("DATA_DIR", "", "1 to 3000 bytes long"),
#undef MUST
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        CHECK_EQ(load_environment(rows[i].entry), ST_INVALID);
        CHECK(reported(rows[i].error));
        CHECK_EQ(report.count, 1);
    }
}

TEST(an_advertised_host_longer_than_the_protocol_can_say_is_refused) { /* */
    static char entry[40000] = "IGGY_KAFKA_ADVERTISED_HOST=";
    size_t name_len = strlen(entry);
    memset(entry + name_len, 'x', 32768);
    CHECK_EQ(load_environment(entry), ST_INVALID);
    CHECK(strstr(report.lines[0], "xxx...\": must be a host name") != NULL);
    entry[name_len + 32767] = '\0';
    CHECK_EQ(load_environment(entry), ST_OK);
    CHECK_EQ(strlen(config.advertised_host), 32767);
}

TEST(good_values_of_each_kind_are_taken) {
    CHECK_EQ(load_environment("IGGY_KAFKA_BIND_ADDR=[::1]:0"), ST_OK);
    CHECK_EQ(load_environment("IGGY_KAFKA_ADVERTISED_HOST= broker-1.example.com\t"), ST_OK);
    CHECK_TEXT(config.advertised_host, "broker-1.example.com"); /* trimmed */
    CHECK_EQ(load_environment("IGGY_KAFKA_ADVERTISED_HOST=2001:db8::1"), ST_OK);
    CHECK_EQ(load_environment("IGGY_KAFKA_SHUTDOWN_DRAIN_TIMEOUT_SECS=0"), ST_OK); /* */
    CHECK_EQ(load_environment("IGGY_KAFKA_MAX_CONNECTIONS=+5"), ST_OK);
    CHECK_EQ(config.max_connections, 5);
    CHECK_EQ(load_environment("IGGY_KAFKA_IGGY_ADDR=iggy.example.com:8090"), ST_OK);
    CHECK_EQ(load_environment("IGGY_KAFKA_IGGY_ADDR=[::1]:8090"), ST_OK);
    CHECK_EQ(load_environment("IGGY_KAFKA_FSYNC=interval:250"), ST_OK);
    CHECK_EQ(config.fsync.policy, FSYNC_INTERVAL);
    CHECK_EQ(config.fsync.interval_ms, 250);
    CHECK_EQ(load_environment("IGGY_KAFKA_FSYNC=always"), ST_OK);
    CHECK_EQ(config.fsync.policy, FSYNC_ALWAYS);
    CHECK_EQ(load_environment("IGGY_KAFKA_FSYNC=never"), ST_OK);
    CHECK_EQ(config.fsync.policy, FSYNC_NEVER);
    CHECK_EQ(load_environment("IGGY_KAFKA_LOG_LEVEL=error"), ST_OK);
    CHECK_EQ(config.log_level, 3);
}

TEST(a_size_may_have_a_unit) { /* */
    static const struct {
        const char *text;
        int64_t bytes;
    } rows[] = {
        {"2097152", 2097152}, {"2097152B", 2097152}, {"2048KiB", 2097152},           {"64MiB", 67108864},
        {"64 mib", 67108864}, {"1GiB", 1073741824},  {"1TiB", INT64_C(1) << 40},     {"2000KB", 2000000},
        {"3MB", 3000000},     {"3GB", 3000000000},   {"1TB", INT64_C(1000000000000)}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char entry[64];
        snprintf(entry, sizeof entry, "IGGY_KAFKA_MEMORY_BUDGET=%s", rows[i].text);
        CHECK_EQ(load_environment(entry), ST_OK);
        CHECK_EQ(config.memory_budget, rows[i].bytes);
    }
}

TEST(an_error_says_where_the_value_stands) {
    CHECK_EQ(load_option("--threads=x"), ST_INVALID);
    CHECK(reported("IGGY_KAFKA_THREADS=\"x\" (--threads): must be a whole number from 1 to 256, or auto"));
    CHECK_EQ(load_file("log_level = \"info\"\n\nthreads = \"x\"\n"), ST_INVALID);
    char expected[512];
    snprintf(expected, sizeof expected,
             "IGGY_KAFKA_THREADS=\"x\" (%s, line 3): must be a whole number from 1 to 256, or auto",
             config.file);
    CHECK(reported(expected));
}

TEST(all_errors_are_reported_at_once) {
    char *options[] = {"--threads=x", "--nonsense", NULL},
         *environment[] = {"IGGY_KAFKA_FSYNC=x", "IGGY_KAFKA_ZZ=1", NULL};
    CHECK_EQ(load(options, environment), ST_INVALID);
    CHECK_EQ(report.count, 4);
}

TEST(a_value_in_an_error_cannot_forge_lines_or_flood) {
    CHECK_EQ(load_environment("IGGY_KAFKA_BACKEND=a\nb\x1b"), ST_INVALID);
    CHECK(reported("IGGY_KAFKA_BACKEND=\"a?b?\": must be one of embedded|iggy|stub"));
    char entry[300] = "IGGY_KAFKA_BACKEND=";
    memset(entry + strlen(entry), 'x', 200);
    CHECK_EQ(load_environment(entry), ST_INVALID);
    CHECK(strlen(report.lines[0]) < 200);
}

TEST(an_unknown_name_is_an_error_that_suggests_the_nearest) { /* */
    CHECK_EQ(load_environment("IGGY_KAFKA_BIND_ADRR=x"), ST_INVALID);
    CHECK(reported("IGGY_KAFKA_BIND_ADRR is not a known variable; did you mean IGGY_KAFKA_BIND_ADDR?"));
    CHECK_EQ(load_environment("IGGY_KAFKA_SFYCN=x"), ST_INVALID); /* neighbours swapped, twice */
    CHECK(reported("IGGY_KAFKA_SFYCN is not a known variable; did you mean IGGY_KAFKA_FSYNC?"));
    CHECK_EQ(load_environment("IGGY_KAFKA_MAX_CONN=5"), ST_INVALID);
    CHECK(reported("IGGY_KAFKA_MAX_CONN is not a known variable; did you mean IGGY_KAFKA_MAX_CONNECTIONS?"));
    CHECK_EQ(load_environment("IGGY_KAFKA_bind_addr=x"), ST_INVALID);
    CHECK(reported("IGGY_KAFKA_bind_addr is not a known variable; did you mean IGGY_KAFKA_BIND_ADDR?"));
    CHECK_EQ(load_environment("IGGY_KAFKA_QWERTZ=x"), ST_INVALID);
    CHECK(reported("IGGY_KAFKA_QWERTZ is not a known variable; see --help"));
    CHECK_EQ(load_environment("IGGY_KAFKA_=x"), ST_INVALID);
    CHECK_EQ(load_environment("IGGY_KAFKA_SERVICE_HOST=10.0.0.1"), ST_INVALID);
    CHECK(reported("IGGY_KAFKA_SERVICE_HOST is not a known variable; "
                   "it looks like a Kubernetes service link: set enableServiceLinks: false"));
    CHECK_EQ(load_option("--bind-adr=x"), ST_INVALID);
    CHECK(reported("unknown option --bind-adr; did you mean --bind-addr?"));
    CHECK_EQ(load_option("--bind_addr=x"), ST_INVALID);
    CHECK(reported("unknown option --bind_addr; did you mean --bind-addr?"));
    CHECK_EQ(load_option("--chekc-config"), ST_INVALID);
    CHECK(reported("unknown option --chekc-config; did you mean --check-config?"));
    CHECK_EQ(load_option("--"), ST_INVALID);
    CHECK(reported("unknown option --; see --help"));
    CHECK_EQ(load_file("a = 1\nmax_conections = 5\nqwertz = 1"), ST_INVALID);
    CHECK_EQ(report.count, 3);
    char expected[512];
    snprintf(expected, sizeof expected,
             "%s, line 2: unknown key max_conections; did you mean max_connections?", config.file);
    CHECK(reported(expected));
    snprintf(expected, sizeof expected, "%s, line 3: unknown key qwertz; see --help", config.file);
    CHECK(reported(expected));
}

TEST(other_programs_variables_do_not_matter) {
    char *environment[] = {"IGGY_ROOT_PASSWORD=x", "PATH=/bin", "IGGY_KAFKA_NO_EQUALS_SIGN", NULL};
    CHECK_EQ(load(NULL, environment), ST_OK);
}

TEST(arguments_that_are_not_settings_are_refused) {
    CHECK_EQ(load_option("127.0.0.1:9093"), ST_INVALID);
    CHECK(reported("unexpected argument \"127.0.0.1:9093\"; settings are written --name=value, see --help"));
    CHECK_EQ(load_option("--bind-addr"), ST_INVALID);
    CHECK(reported("option --bind-addr needs a value"));
    CHECK_EQ(load_option("--config"), ST_INVALID);
    CHECK(reported("option --config needs a value"));
    char *options[] = {"--bind-addr", "--threads=1", NULL};
    CHECK_EQ(load(options, NULL), ST_INVALID);
    CHECK(reported("option --bind-addr needs a value"));
}

TEST(a_file_holds_texts_whole_numbers_and_booleans) {
    CHECK_EQ(
        load_file(
            "data_dir = \"/data\"\nmax_connections = 7\nauto_create_topics = true\nfsync = \"interval:9\"\n"
            "segment_bytes = \"2MiB\"\n"),
        ST_OK);
    CHECK_TEXT(config.data_dir, "/data");
    CHECK_EQ(config.max_connections, 7);
    CHECK(config.auto_create_topics);
    CHECK_EQ(config.fsync.interval_ms, 9);
    CHECK_EQ(config.segment_bytes, 2 << 20);
    static const char *const values[] = {"1.5", "[1]", "{a = 1}", "2026-01-01", "\"a\\u0000b\""};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        char text[64], expected[512];
        snprintf(text, sizeof text, "\nthreads = %s\n", values[i]);
        CHECK_EQ(load_file(text), ST_INVALID);
        snprintf(expected, sizeof expected,
                 "%s, line 2: threads must be a text, a whole number, true or false", config.file);
        CHECK(reported(expected));
    }
}

TEST(a_file_that_is_no_toml_is_refused_with_its_line) {
    CHECK_EQ(load_file("threads = 1\nmax_connections 5\n"), ST_INVALID);
    char start[512];
    snprintf(start, sizeof start, "%s, line 2: ", config.file);
    CHECK_EQ(report.count, 1);
    CHECK(strncmp(report.lines[0], start, strlen(start)) == 0);
    CHECK_EQ(load_file("threads = 1\nthreads = 2\n"), ST_INVALID);
    CHECK(strstr(report.lines[0], "line 2: ") != NULL);
    char *options[] = {"--config=/no/such/gateway.toml", NULL};
    CHECK_EQ(load(options, NULL), ST_INVALID);
    CHECK(strncmp(report.lines[0], "/no/such/gateway.toml: ", 23) == 0);
}

TEST(bridge_enabled_is_another_word_for_the_backend) { /* A-11; decisions, the product 1 */
    CHECK_EQ(load_environment("IGGY_KAFKA_BRIDGE_ENABLED=false"), ST_OK);
    CHECK_EQ(config.backend, BACKEND_STUB);
    char *both[] = {"IGGY_KAFKA_BRIDGE_ENABLED=false", "IGGY_KAFKA_BACKEND=stub", NULL};
    CHECK_EQ(load(NULL, both), ST_OK);
    CHECK_EQ(config.backend, BACKEND_STUB);
    static const char *const disagreeing[][2] = {
        {"embedded", "true"}, {"embedded", "false"}, {"iggy", "false"}, {"stub", "true"}};
    for (size_t i = 0; i < COUNT_OF(disagreeing); i++) {
        char backend[64], bridge[64], expected[256];
        snprintf(backend, sizeof backend, "IGGY_KAFKA_BACKEND=%s", disagreeing[i][0]);
        snprintf(bridge, sizeof bridge, "IGGY_KAFKA_BRIDGE_ENABLED=%s", disagreeing[i][1]);
        char *environment[] = {backend, bridge, NULL};
        CHECK_EQ(load(NULL, environment), ST_INVALID);
        snprintf(
            expected, sizeof expected,
            "%s and %s contradict each other: true means the backend iggy, false means stub; set one of them",
            backend, bridge);
        CHECK(reported(expected));
    }
}

TEST(a_wildcard_address_needs_an_advertised_host) { /* */
    static const char *const wildcards[] = {"0.0.0.0:9093", "[::]:0", "[0:0::0]:9093"};
    for (size_t i = 0; i < COUNT_OF(wildcards); i++) {
        char entry[64], expected[256];
        snprintf(entry, sizeof entry, "IGGY_KAFKA_BIND_ADDR=%s", wildcards[i]);
        CHECK_EQ(load_environment(entry), ST_INVALID);
        snprintf(expected, sizeof expected,
                 "%s binds every address of the machine: IGGY_KAFKA_ADVERTISED_HOST must say which host "
                 "clients are to connect to",
                 entry);
        CHECK(reported(expected));
        char *environment[] = {entry, "IGGY_KAFKA_ADVERTISED_HOST=broker", NULL};
        CHECK_EQ(load(NULL, environment), ST_OK);
    }
}

TEST(tls_settings_that_nothing_would_use_are_refused) { /* */
    CHECK_EQ(load_environment("IGGY_KAFKA_IGGY_TLS_DOMAIN=iggy.example.com"), ST_INVALID);
    CHECK(reported("IGGY_KAFKA_IGGY_TLS_DOMAIN is set, but IGGY_KAFKA_IGGY_TLS_ENABLED is not true: nothing "
                   "would use it"));
    CHECK_EQ(load_environment("IGGY_KAFKA_IGGY_TLS_DOMAIN="), ST_OK);
    char ca_file[300];
    snprintf(ca_file, sizeof ca_file, "IGGY_KAFKA_IGGY_TLS_CA_FILE=%s", file_with("pem"));
    CHECK_EQ(load_environment(ca_file), ST_INVALID);
    CHECK(reported("IGGY_KAFKA_IGGY_TLS_CA_FILE is set, but IGGY_KAFKA_IGGY_TLS_ENABLED is not true: nothing "
                   "would use it"));
    CHECK_EQ(load_environment("IGGY_KAFKA_IGGY_TLS_ENABLED=true"), ST_INVALID);
    CHECK(reported("IGGY_KAFKA_IGGY_TLS_ENABLED=true needs a connection to Iggy: "
                   "IGGY_KAFKA_BACKEND=iggy or IGGY_KAFKA_SASL_ENABLED=true"));
    char *cert[] = {"--tls-cert-file", (char *)file_with("pem"), NULL};
    CHECK_EQ(load(cert, NULL), ST_INVALID);
    CHECK(reported("IGGY_KAFKA_TLS_CERT_FILE and IGGY_KAFKA_TLS_KEY_FILE must be set together"));
    char *client_ca[] = {"--tls-client-ca-file", (char *)file_with("pem"), NULL};
    CHECK_EQ(load(client_ca, NULL), ST_INVALID);
    CHECK(reported("IGGY_KAFKA_TLS_CLIENT_CA_FILE needs IGGY_KAFKA_TLS_CERT_FILE"));
    CHECK_EQ(load_environment("IGGY_KAFKA_IGGY_LISTEN_TLS=true"), ST_INVALID);
    CHECK(reported("IGGY_KAFKA_IGGY_LISTEN_TLS=true needs IGGY_KAFKA_TLS_CERT_FILE"));
}

TEST(tls_for_clients_takes_a_certificate_and_its_key) { /* H-7 */
    char cert[300], key[300], roots[300];
    const char *path = file_with("pem");
    snprintf(cert, sizeof cert, "--tls-cert-file=%s", path);
    snprintf(key, sizeof key, "--tls-key-file=%s", path);
    snprintf(roots, sizeof roots, "--tls-client-ca-file=%s", path);
    char *one_sided[] = {cert, key, "--iggy-listen-tls", NULL};
    CHECK_EQ(load(one_sided, NULL), ST_OK);
    CHECK(config.iggy_listen_tls);
    char *mutual[] = {cert, key, roots, NULL};
    CHECK_EQ(load(mutual, NULL), ST_OK);
    CHECK(!config.iggy_listen_tls);
    CHECK_TEXT(config.tls_client_ca_file, path);
}

TEST(what_this_version_lacks_is_refused_by_name) {
    CHECK_EQ(load_environment("IGGY_KAFKA_SASL_ENABLED=true"), ST_INVALID);
    CHECK(reported("IGGY_KAFKA_SASL_ENABLED=true: this version has no SASL yet"));
    char map[400], expected[512];
    const char *path = file_with("map");
    snprintf(map, sizeof map, "--topic-map-path=%s", path);
    CHECK_EQ(load_option(map), ST_INVALID);
    snprintf(expected, sizeof expected, "IGGY_KAFKA_TOPIC_MAP_PATH=%s: the embedded log has no topic map yet",
             path);
    CHECK(reported(expected));
    char *bridge[] = {map, "--backend=iggy", "--iggy-password=x", NULL};
    CHECK_EQ(load(bridge, NULL), ST_OK);
}

TEST(the_least_session_of_a_group_is_no_longer_than_the_longest) { /* D11-80 */
    CHECK_EQ(load_option("--group-min-session-timeout-ms=1800001"), ST_INVALID);
    CHECK_EQ(report.count, 1);
    CHECK(strstr(report.lines[0], "IGGY_KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS=1800001 is more than") != NULL);
    CHECK(strstr(report.lines[0], "IGGY_KAFKA_GROUP_MAX_SESSION_TIMEOUT_MS=1800000") != NULL);
    CHECK_EQ(load_option("--group-min-session-timeout-ms=1800000"), ST_OK);
    CHECK_EQ(load_option("--group-initial-rebalance-delay-ms=0"), ST_OK);
    CHECK_EQ(load_option("--group-max-size=0"), ST_INVALID);
}

TEST(the_bridge_needs_a_password) { /* */
    CHECK_EQ(load_environment("IGGY_KAFKA_BACKEND=iggy"), ST_INVALID);
    CHECK_EQ(report.count, 1);
    CHECK(reported("IGGY_KAFKA_IGGY_PASSWORD must be set when IGGY_KAFKA_BACKEND is iggy"));
    char *bridge[] = {"IGGY_KAFKA_BRIDGE_ENABLED=true", "IGGY_KAFKA_IGGY_PASSWORD=x", NULL};
    CHECK_EQ(load(NULL, bridge), ST_OK);
    CHECK_EQ(config.backend, BACKEND_IGGY);
}

TEST(a_host_and_its_port_come_apart) {
    char host[32];
    CHECK_EQ(address_split("iggy.example.com:8090", host, sizeof host), 8090);
    CHECK_TEXT(host, "iggy.example.com");
    CHECK_EQ(address_split("[::1]:1", host, sizeof host), 1);
    CHECK_TEXT(host, "::1");
}

static bool warned(const char *line) {
    config_warnings(&config, &report);
    for (int i = 0; i < report.count; i++)
        if (strcmp(report.lines[i], line) == 0)
            return true;
    return false;
}

TEST(a_missing_instance_id_is_warned_about) { /* */
    const char *line =
        "IGGY_KAFKA_INSTANCE_ID is not set: it must differ between instances that serve the same topics";
    CHECK_EQ(load(NULL, NULL), ST_OK);
    CHECK(warned(line));
    CHECK_EQ(report.count, 1);
    CHECK_EQ(load_environment("IGGY_KAFKA_INSTANCE_ID=0"), ST_OK);
    CHECK(!warned(line));
}

TEST(an_open_port_without_login_is_warned_about) { /* */
    const char *line =
        "SASL is off: whoever can reach the port may create topics, delete them and shorten their retention";
    CHECK_EQ(load_environment("IGGY_KAFKA_BIND_ADDR=192.0.2.1:9093"), ST_OK);
    CHECK(warned(line));
    CHECK_EQ(load_environment("IGGY_KAFKA_BIND_ADDR=[::1]:9093"), ST_OK);
    CHECK(!warned(line));
    char *stub[] = {"--backend=stub", "--bind-addr=192.0.2.1:9093", NULL};
    CHECK_EQ(load(stub, NULL), ST_OK);
    CHECK(!warned(line));
    char *bridge[] = {"--backend=iggy", "--iggy-password=x", NULL};
    CHECK_EQ(load(bridge, NULL), ST_OK);
    CHECK(warned(line)); /* an Iggy server is there for others, too */
    const char *path = file_with("pem");
    char cert[300], key[300], roots[300];
    snprintf(cert, sizeof cert, "--tls-cert-file=%s", path);
    snprintf(key, sizeof key, "--tls-key-file=%s", path);
    snprintf(roots, sizeof roots, "--tls-client-ca-file=%s", path);
    char *encrypted[] = {cert, key, "--bind-addr=192.0.2.1:9093", NULL};
    CHECK_EQ(load(encrypted, NULL), ST_OK);
    CHECK(warned(line));
    char *mutual[] = {cert, key, roots, "--bind-addr=192.0.2.1:9093", NULL};
    CHECK_EQ(load(mutual, NULL), ST_OK);
    CHECK(!warned(line)); /* whom the roots don't vouch for doesn't reach it */
}

TEST(a_setting_that_nothing_uses_is_warned_about) {
    CHECK_EQ(load_environment("IGGY_KAFKA_IGGY_ADDR=iggy:8090"), ST_OK);
    CHECK(warned("IGGY_KAFKA_IGGY_ADDR has no effect without IGGY_KAFKA_BACKEND=iggy"));
    CHECK_EQ(load_environment("IGGY_KAFKA_AUTHORIZATION=gateway"), ST_OK);
    CHECK(warned("IGGY_KAFKA_AUTHORIZATION has no effect without IGGY_KAFKA_SASL_ENABLED=true"));
    char *stub[] = {"--backend=stub", "--data-dir=/data", "--auto-create-topics",
                    "--offsets-retention-minutes=1", NULL};
    CHECK_EQ(load(stub, NULL), ST_OK);
    CHECK(warned("IGGY_KAFKA_DATA_DIR has no effect without IGGY_KAFKA_BACKEND=embedded"));
    CHECK(warned("IGGY_KAFKA_OFFSETS_RETENTION_MINUTES has no effect without IGGY_KAFKA_BACKEND=embedded"));
    CHECK(warned("IGGY_KAFKA_AUTO_CREATE_TOPICS has no effect without a backend that keeps records"));
    CHECK_EQ(load_option("--data-dir=/data"), ST_OK);
    CHECK(!warned("IGGY_KAFKA_DATA_DIR has no effect without IGGY_KAFKA_BACKEND=embedded"));
}

/* All that print writes. */
static const char *printed(void (*print)(FILE *to)) {
    static char text[32768];
    FILE *to = fmemopen(text, sizeof text, "w");
    CHECK(to != NULL);
    print(to);
    fclose(to);
    return text;
}
static void print_config(FILE *to) {
    config_print(&config, to);
}

TEST(a_password_is_never_printed) { /* */
    const char *path = file_with("data_dir = \"/data\"\n");
    char *options[] = {"--config", (char *)path, "--threads=1", NULL};
    char *environment[] = {"IGGY_KAFKA_IGGY_PASSWORD=topsecret", "IGGY_KAFKA_IGGY_USERNAME=u", NULL};
    CHECK_EQ(load(options, environment), ST_OK);
    CHECK_TEXT(config.iggy_password, "topsecret");
    const char *text = printed(print_config);
    CHECK(strstr(text, "topsecret") == NULL);
    CHECK(strstr(text, "IGGY_KAFKA_IGGY_PASSWORD=*** (environment)\n") != NULL);
    CHECK(strstr(text, "IGGY_KAFKA_IGGY_USERNAME=u (environment)\n") != NULL);
    CHECK(strstr(text, "IGGY_KAFKA_THREADS=1 (--threads)\n") != NULL);
    CHECK(strstr(text, "IGGY_KAFKA_DATA_DIR=/data (file, line 1)\n") != NULL);
    CHECK(strstr(text, "IGGY_KAFKA_FSYNC=acks (default)\n") != NULL);

    char entry[400] = "IGGY_KAFKA_IGGY_PASSWORD=";
    memset(entry + strlen(entry), 's', 300);
    CHECK_EQ(load_environment(entry), ST_INVALID);
    CHECK(reported("IGGY_KAFKA_IGGY_PASSWORD: must be 1 to 255 bytes long"));
    CHECK_EQ(load_environment("IGGY_KAFKA_IGGY_PASSWROD=topsecret"), ST_INVALID);
    CHECK(
        reported("IGGY_KAFKA_IGGY_PASSWROD is not a known variable; did you mean IGGY_KAFKA_IGGY_PASSWORD?"));
}

TEST(help_shows_every_variable_with_its_default) {
    const char *text = printed(config_print_help);
    for (int v = 0; v < CONFIG_COUNT; v++) {
        const struct variable *variable = &config_variables[v];
        char option[CONFIG_NAME_BYTES], line[256];
        variable_spell(variable->name, FROM_OPTION, option);
        const char *standard = variable->type.standard;
        snprintf(line, sizeof line, "\n  %s=%s, IGGY_KAFKA_%s%s%s%s\n      %s\n", option,
                 value_placeholder(&variable->type), variable->name, standard ? " [" : "",
                 standard ? standard : "", standard ? "]" : "", variable->help);
        CHECK(strstr(text, line) != NULL);
    }
}

TEST(help_and_version_are_shown_whatever_else_is_wrong) {
    char *help[] = {"--nonsense", "--help", NULL}, *version[] = {"--version", "--threads=x", NULL};
    char *environment[] = {"IGGY_KAFKA_NONSENSE=1", NULL};
    CHECK_EQ(load(help, environment), ST_OK);
    CHECK_EQ(config.action, CONFIG_HELP);
    CHECK_EQ(load(version, environment), ST_OK);
    CHECK_EQ(config.action, CONFIG_VERSION);
    CHECK_EQ(load_option("--check-config"), ST_OK);
    CHECK_EQ(config.action, CONFIG_CHECK);
}

TEST_OOM(loading_survives_every_failing_allocation) {
    static const char *path;
    if (!path)
        path = mem_text(str_of(file_with("threads = 1\n"))); /* kept: test_dir has few folders */
    if (!path)
        return;
    char *options[] = {"--config", (char *)path, "--cluster-id=a", "--cluster-id=b", NULL};
    char *environment[] = {"IGGY_KAFKA_MAX_IN_FLIGHT=2", NULL};
    enum status st = load(options, environment);
    CHECK(st == ST_OK || st == ST_NO_MEMORY);
    if (st == ST_OK)
        CHECK_TEXT(config.cluster_id, "b");
    config_release(&config);
}

// No exception leaves this file: what C++ throws comes back as a text.
#include "app/toml.h"

#include <cstdio>
#include <exception>
#include <string>

#include <toml++/toml.h>

// The value as text; false: it has a type that no setting has.
static bool value_text(const toml::node &value, std::string &out) {
    if (const auto *text = value.as_string()) {
        out = text->get();
        return out.find('\0') == std::string::npos;
    }
    if (const auto *number = value.as_integer()) {
        out = std::to_string(number->get());
        return true;
    }
    if (const auto *truth = value.as_boolean()) {
        out = truth->get() ? "true" : "false";
        return true;
    }
    return false;
}

static int line_of(const toml::node &value) {
    return static_cast<int>(value.source().begin.line);
}

// Parse the file and call read(table); what is thrown becomes the error.
template <typename Read>
static int file_read(const char *path, char *error, size_t error_bytes, Read read) {
    try {
        read(toml::parse_file(path));
        return 0;
    } catch (const toml::parse_error &e) {
        const auto line = static_cast<unsigned>(e.source().begin.line);
        const std::string what(e.description());
        if (line > 0)
            std::snprintf(error, error_bytes, "%s, line %u: %s", path, line, what.c_str());
        else
            std::snprintf(error, error_bytes, "%s: %s", path, what.c_str());
    } catch (const std::exception &e) {
        std::snprintf(error, error_bytes, "%s: %s", path, e.what());
    }
    return -1;
}

extern "C" int toml_read(const char *path, toml_key_fn *each, void *user, char *error, size_t error_bytes) {
    return file_read(path, error, error_bytes, [&](const toml::table &table) {
        for (const auto &[key, value] : table) {
            std::string text;
            const bool known_type = value_text(value, text);
            each(user, std::string(key.str()).c_str(), known_type ? text.c_str() : nullptr, line_of(value));
        }
    });
}

static void rows_of(const toml::table &table, const char *topic, toml_row_fn *each, void *user) {
    for (const auto &[key, value] : table) {
        if (!topic && key.str() == "topics" && value.is_table())
            continue;
        const auto *text = value.as_string();
        const bool whole = text && text->get().find('\0') == std::string::npos;
        each(user, topic, std::string(key.str()).c_str(), whole ? text->get().c_str() : nullptr, line_of(value));
    }
}

extern "C" int toml_read_topics(const char *path, toml_row_fn *each, void *user, char *error,
                                size_t error_bytes) {
    return file_read(path, error, error_bytes, [&](const toml::table &table) {
        const auto *topics = table["topics"].as_table();
        rows_of(table, nullptr, each, user);
        if (!topics)
            return;
        for (const auto &[name, value] : *topics) {
            const std::string topic(name.str());
            if (const auto *rows = value.as_table())
                rows_of(*rows, topic.c_str(), each, user);
            else
                each(user, nullptr, topic.c_str(), nullptr, line_of(value));
        }
    });
}

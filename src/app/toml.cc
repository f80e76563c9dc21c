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

extern "C" int toml_read(const char *path, toml_key_fn *each, void *user, char *error, size_t error_bytes) {
    try {
        const toml::table table = toml::parse_file(path);
        for (const auto &[key, value] : table) {
            std::string text;
            const bool known_type = value_text(value, text);
            each(user, std::string(key.str()).c_str(), known_type ? text.c_str() : nullptr,
                 static_cast<int>(value.source().begin.line));
        }
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

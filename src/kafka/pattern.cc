// No exception leaves this file. What RE2 allocates does not come from base/mem.h; PATTERN_MEMORY_MAX bounds it.
#include "kafka/pattern.h"

#include <exception>
#include <new>

#include <re2/re2.h>

struct pattern {
    RE2 re;
    pattern(const re2::StringPiece &text, const RE2::Options &options) : re(text, options) {}
};

// RE2/J's words for RE2's errors.
static const char *problem_of(RE2::ErrorCode code) {
    switch (code) {
    case RE2::ErrorBadEscape:
        return "invalid escape sequence";
    case RE2::ErrorBadCharClass:
        return "invalid character class";
    case RE2::ErrorBadCharRange:
        return "invalid character class range";
    case RE2::ErrorMissingBracket:
        return "missing closing ]";
    case RE2::ErrorMissingParen:
        return "missing closing )";
    case RE2::ErrorTrailingBackslash:
        return "trailing backslash at end of expression";
    case RE2::ErrorRepeatArgument:
        return "missing argument to repetition operator";
    case RE2::ErrorRepeatSize:
        return "invalid repeat count";
    case RE2::ErrorRepeatOp:
        return "invalid nested repetition operator";
    case RE2::ErrorBadPerlOp:
        return "invalid or unsupported Perl syntax";
    case RE2::ErrorBadUTF8:
        return "invalid UTF-8";
    case RE2::ErrorBadNamedCapture:
        return "invalid named capture";
    case RE2::ErrorPatternTooLarge:
        return "expression too large";
    default: // as RE2/J of a parenthesis too many
        return "regexp/syntax: internal error";
    }
}

extern "C" enum status pattern_new(struct str text, struct pattern **out, const char **problem_out) {
    if (text.len < 0 || text.len > PATTERN_BYTES_MAX) {
        *problem_out = "expression too large";
        return ST_INVALID;
    }
    try {
        RE2::Options options; // UTF-8, Perl's syntax, "." is no line break: as RE2/J without flags
        options.set_log_errors(false);
        options.set_never_capture(true);
        options.set_max_mem(PATTERN_MEMORY_MAX);
        auto *p = new pattern({text.ptr, static_cast<size_t>(text.len)}, options);
        if (p->re.ok()) {
            *out = p;
            return ST_OK;
        }
        *problem_out = problem_of(p->re.error_code());
        delete p;
        return ST_INVALID;
    } catch (const std::exception &) {
        return ST_NO_MEMORY;
    }
}

extern "C" void pattern_free(struct pattern *p) {
    delete p;
}

extern "C" enum status pattern_match(const struct pattern *p, struct str text, bool *out) {
    try {
        const re2::StringPiece all(text.ptr, static_cast<size_t>(text.len));
        *out = p->re.Match(all, 0, all.size(), RE2::ANCHOR_BOTH, nullptr, 0);
        return ST_OK;
    } catch (const std::exception &) {
        return ST_NO_MEMORY;
    }
}

/* How a variable is written in each source, and which one was meant. */
#include <ctype.h>
#include <stdio.h>

#include "app/config_impl.h"

/* Options that are no variables, spelled as such. */
static const char *const other_options[] = {"HELP", "VERSION", "CHECK_CONFIG", "CONFIG"};

void variable_spell(const char *name, enum config_source style, char *out) {
    if (style == FROM_ENVIRONMENT) {
        snprintf(out, CONFIG_NAME_BYTES, CONFIG_PREFIX "%s", name);
        return;
    }
    snprintf(out, CONFIG_NAME_BYTES, "%s%s", style == FROM_OPTION ? "--" : "", name);
    for (char *c = out; *c; c++)
        *c = *c == '_' && style == FROM_OPTION ? '-' : (char)tolower((unsigned char)*c);
}

int variable_find(const char *name, size_t len, enum config_source style) {
    char spelled[CONFIG_NAME_BYTES];
    for (int v = 0; v < CONFIG_COUNT; v++) {
        variable_spell(config_variables[v].name, style, spelled);
        if (strlen(spelled) == len && memcmp(spelled, name, len) == 0)
            return v;
    }
    return -1;
}

static int least_of(int a, int b) {
    return a < b ? a : b;
}

/* Letters to insert, drop, change or swap with their neighbour, until a is b (optimal string alignment). */
static int edit_distance(const char *a, size_t a_len, const char *b, size_t b_len) {
    int rows[3][CONFIG_NAME_BYTES + 1];
    int *two_up = rows[0], *up = rows[1], *row = rows[2];
    for (size_t j = 0; j <= b_len; j++)
        up[j] = (int)j;
    for (size_t i = 1; i <= a_len; i++) {
        row[0] = (int)i;
        for (size_t j = 1; j <= b_len; j++) {
            row[j] = least_of(up[j - 1] + (a[i - 1] != b[j - 1]), least_of(up[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least_of(row[j], two_up[j - 2] + 1);
        }
        int *oldest = two_up;
        two_up = up;
        up = row;
        row = oldest;
    }
    return up[b_len];
}

/* Without prefix and dashes, in capitals, as in config.def: so that all styles compare alike. 0: too long, or empty. */
static size_t name_normalize(const char *name, size_t len, enum config_source style, char *out) {
    size_t skip = style == FROM_ENVIRONMENT ? strlen(CONFIG_PREFIX) : style == FROM_OPTION ? 2 : 0;
    if (len <= skip || len - skip >= CONFIG_NAME_BYTES)
        return 0;
    for (size_t i = 0; i < len - skip; i++)
        out[i] = name[skip + i] == '-' ? '_' : (char)toupper((unsigned char)name[skip + i]);
    return len - skip;
}

bool variable_nearest(const char *name, size_t len, enum config_source style, char *out) {
    char meant[CONFIG_NAME_BYTES];
    size_t meant_len = name_normalize(name, len, style, meant);
    int others = style == FROM_OPTION ? (int)COUNT_OF(other_options) : 0;
    int best = 2 + (int)meant_len / 3; /* farther than that it is another word */
    const char *found = NULL;
    for (int v = 0; v < CONFIG_COUNT + others && meant_len > 0; v++) {
        const char *known = v < CONFIG_COUNT ? config_variables[v].name : other_options[v - CONFIG_COUNT];
        size_t known_len = strlen(known);
        bool is_beginning = meant_len >= 4 && meant_len < known_len && memcmp(known, meant, meant_len) == 0;
        int distance = is_beginning ? 1 : edit_distance(meant, meant_len, known, known_len);
        if (distance < best) {
            best = distance;
            found = known;
        }
    }
    if (found)
        variable_spell(found, style, out);
    return found != NULL;
}

/* Reads the TOML files there are: flat ones, and the topic map. Behind it: toml++, in a C++ file. */
#ifndef APP_TOML_H
#define APP_TOML_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One key of the top level. All borrowed until it returns.
 * text  the value of a text, whole number or boolean, as it would stand in an environment variable; NULL: a value of another type
 * line  1..
 */
typedef void toml_key_fn(void *user, const char *key, const char *text, int line);

/*
 * Call each for every key of the file at path, in an unspecified order. 0: done; -1: the file can't be read or isn't TOML, and error
 * holds one sentence with path and line (terminated, cut to error_bytes); each may have been called for none or some. Blocks.
 */
int toml_read(const char *path, toml_key_fn *each, void *user, char *error, size_t error_bytes);

/*
 * One key of a file with tables [topics.NAME]. topic: NAME; NULL: a key of the top level. text: as above, but NULL also for what is neither
 * such a table nor a key of one.
 */
typedef void toml_row_fn(void *user, const char *topic, const char *key, const char *text, int line);

/* As toml_read, for such a file; in an unspecified order, but the keys of one topic one after the other. */
int toml_read_topics(const char *path, toml_row_fn *each, void *user, char *error, size_t error_bytes);

#ifdef __cplusplus
}
#endif
#endif

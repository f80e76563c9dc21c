/* The whole server, from a checked configuration to its end. */
#ifndef APP_SERVER_H
#define APP_SERVER_H

#include "app/config.h"

/*
 * Build everything, serve until SIGINT or SIGTERM, drain, write what is left, take everything down. Once in a process, on its
 * main thread, before there are others. A second signal while it drains ends the process at once.
 * config  as long as the call
 * Returns the exit code: 0 after a signal; 1: it could not start, and one error line said why., B-50, B-51.
 */
int server_run(const struct config *config) MUST_USE;
#endif

/* Tells systemd how far the start is. Source: sd_notify(3), the protocol only. */
#ifndef APP_NOTIFY_H
#define APP_NOTIFY_H

/*
 * Send one state, as "READY=1" or "STOPPING=1".
 * socket_path  what NOTIFY_SOCKET holds: a path, or @name of an abstract socket; NULL: nobody wants to know
 * No effect when it can't be sent: nothing here depends on it.
 */
void notify_send(const char *socket_path, const char *state);
#endif

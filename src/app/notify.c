#include "app/notify.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_send(const char *socket_path, const char *state) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t len = socket_path ? strlen(socket_path) : 0;
    if (len < 2 || len >= sizeof to.sun_path || (socket_path[0] != '/' && socket_path[0] != '@'))
        return;
    memcpy(to.sun_path, socket_path, len);
    if (socket_path[0] == '@')
        to.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&to,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
    close(fd);
}

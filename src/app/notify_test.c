#include "app/notify.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "testing/test.h"

/* A datagram socket at path (@: abstract). */
static int listen_at(const char *path) {
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memcpy(at.sun_path, path, strlen(path));
    if (path[0] == '@')
        at.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0);
    CHECK_EQ(
        bind(fd, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))),
        0);
    return fd;
}

TEST(systemd_hears_the_state_on_either_kind_of_socket) {
    char paths[2][100];
    snprintf(paths[0], sizeof paths[0], "%s/notify", test_dir());
    snprintf(paths[1], sizeof paths[1], "@igk-notify-%d", (int)getpid());
    for (int i = 0; i < 2; i++) {
        int fd = listen_at(paths[i]);
        char got[32] = "";
        notify_send(paths[i], "READY=1");
        CHECK_EQ(recv(fd, got, sizeof got - 1, 0), 7);
        CHECK_TEXT(got, "READY=1");
        close(fd);
    }
}

TEST(nobody_to_tell_is_no_trouble) {
    char too_long[200];
    memset(too_long, '/', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    notify_send(NULL, "READY=1");
    notify_send("", "READY=1");
    notify_send("relative", "READY=1");
    notify_send("/no/such/socket", "READY=1");
    notify_send(too_long, "READY=1");
}

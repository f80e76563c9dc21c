"""Where a suite of client programs runs: on the embedded log, on the bridge in front of it, or on any Kafka server (BOOTSTRAP=HOST:PORT)."""

import contextlib
import os

from bridge import Bridge
from server import Server

GIVEN = os.environ.get("BOOTSTRAP")
PLACES = ["given"] if GIVEN else ["embedded", "bridge"]


class Place:
    """restart() ends the gateway and starts it again; a server that was given goes on."""

    def __init__(self, name, bootstrap, gateway=None):
        self.name, self.bootstrap, self.gateway = name, bootstrap, gateway

    def restart(self):
        if self.gateway:
            assert self.gateway.stop() == 0
            self.gateway.start()


@contextlib.contextmanager
def place(name, folder, **settings):
    """settings: the gateway's."""
    settings = {"GROUP_INITIAL_REBALANCE_DELAY_MS": 0, "AUTO_CREATE_TOPICS": "false"} | settings
    if name == "given":
        yield Place(name, GIVEN)
    elif name == "embedded":
        with Server(str(folder), **settings) as server:
            yield Place(name, server.bootstrap, server)
    else:
        with Bridge("0.12", str(folder), **settings) as bridge:
            yield Place(name, bridge.bootstrap, bridge.gateway)

"""A gateway in front of an Iggy server of ours: two processes, and what may stand between them."""

import os
import shutil
import tempfile

from server import ROOT_PASSWORD, ROOT_USER, Server

GENERATIONS = ("0.11", "0.12")


class Bridge:
    """`server` holds the records and lets in Iggy clients of one protocol version only; `gateway` serves Kafka clients from it. between is made with
    the server's address and has an `address` of its own (faults.py), or is None. Settings are the gateway's."""

    def __init__(self, generation, folder=None, between=None, server_settings=None, **settings):
        self.temporary = folder is None
        self.folder = folder or tempfile.mkdtemp(prefix="bridge-")
        self.server = Server(self._folder("server"), iggy=True, IGGY_LISTEN_VERSIONS=generation, **(server_settings or {}))
        self.between, self.proxy = between, None
        self.settings = {"IGGY_USERNAME": ROOT_USER, "IGGY_PASSWORD": ROOT_PASSWORD} | settings
        self.gateway = None

    def _folder(self, name):
        path = os.path.join(self.folder, name)
        os.makedirs(path, exist_ok=True)
        return path

    @property
    def bootstrap(self):
        return self.gateway.bootstrap

    def start(self):
        self.server.start()
        try:
            self.proxy = self.between(self.server.iggy_address) if self.between else None
            self.gateway = gateway(self.proxy.address if self.proxy else self.server.iggy_address, self._folder("gateway"), **self.settings).start()
        except BaseException:
            self.server.kill()
            raise
        return self

    def __enter__(self):
        return self if self.gateway else self.start()

    def __exit__(self, *error):
        """The gateway first: it ends whether or not its server is there."""
        try:
            self.gateway.__exit__(*error)
        finally:
            if self.proxy:
                self.proxy.close()
            self.server.__exit__(*error)
        if self.temporary:
            shutil.rmtree(self.folder, ignore_errors=True)


def gateway(address, folder=None, **settings):
    """A gateway in front of any Iggy server."""
    return Server(folder, BACKEND="iggy", IGGY_ADDR=address, INSTANCE_ID=1, **settings)

"""The server and the SDKs. IGGY_SERVER=host:port (with IGGY_USER, IGGY_PASSWORD) judges a server that runs already, without the Kafka side."""

import itertools
import os
import sys
import tempfile

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from sdk import PASSWORD, SDKS, USER, Client  # noqa: E402
from server import Server  # noqa: E402

_numbers = itertools.count(os.getpid() * 1000)


class Foreign:
    """A server that somebody else started."""

    def __init__(self, address):
        self.iggy_address, self.bootstrap = address, None


@pytest.fixture(scope="session")
def server():
    if address := os.environ.get("IGGY_SERVER"):
        yield Foreign(address)
        return
    with Server(iggy=True) as ours:
        yield ours


@pytest.fixture(scope="session")
def logs():
    return os.environ.get("LOGS") or tempfile.mkdtemp(prefix="iggy-sdks-")


@pytest.fixture(params=list(SDKS))
def sdk(request):
    return request.param


@pytest.fixture
def connect(server, sdk, logs):
    """connect(): another client of this SDK, logged in as root unless told otherwise (user=None: not at all)."""
    clients = []

    def one(user=USER, password=PASSWORD, address=None):
        client = Client(sdk, address or server.iggy_address, f"{logs}/{sdk}.err")
        clients.append(client)
        if user is not None:
            client.login(user=user, password=password)
        return client

    yield one
    for client in clients:
        client.close()


_roots = {}


@pytest.fixture
def root(server, sdk, logs):
    """This SDK's client, logged in as root; it stays for the whole run unless it ended or lost its server."""
    client = _roots.get(sdk)
    if client is None or client.process.poll() is not None or not client.answers():
        client = _roots[sdk] = Client(sdk, server.iggy_address, f"{logs}/{sdk}.err")
        client.login(user=USER, password=PASSWORD)
    return client


def pytest_sessionfinish():
    for client in _roots.values():
        client.close()


@pytest.fixture
def name():
    """A name that nothing else has."""
    return f"judge-{next(_numbers)}"


@pytest.fixture
def stream(root, name):
    """A stream of this test's own."""
    root.create_stream(name=name)
    yield name
    if root.process.poll() is None and root.answers() and root.stream(stream=name):
        root.delete_stream(stream=name)


@pytest.fixture
def topic(root, stream):
    """A topic "t" with three partitions in `stream`."""
    root.create_topic(stream=stream, topic="t", partitions=3)
    return "t"

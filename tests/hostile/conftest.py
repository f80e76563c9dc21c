"""Servers for the hostile suite. A test that needs other settings makes its own."""

import os
import resource
import time

import pytest
from iggy_client import prepare, serve_honestly
from kwire import Conn
from server import BINARY, Server

with open(BINARY, "rb") as program:
    code = program.read()
SANITIZED = b"__asan_init" in code or b"__tsan_init" in code
# What was freed may be kept: 64 MiB by each of malloc's arenas (src/app/server.c); a sanitizer has memory of its own beside that.
GROWTH = (512 if SANITIZED else 128) << 20


def pytest_configure():
    """Tests open more than a thousand connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))


@pytest.fixture(scope="module")
def shared():
    with Server(READ_TIMEOUT_SECS=2) as running:
        yield running


@pytest.fixture
def server(shared):
    """After each test it must be alive and must not have grown by more than GROWTH."""
    before = shared.rss()
    yield shared
    conn = Conn(shared.bootstrap, timeout=5)
    assert conn.alive() == "open"
    conn.close()
    grown = shared.rss() - before
    assert grown < GROWTH, f"resident memory grew by {grown >> 20} MiB"


def sockets(server):
    """How many sockets the server has open."""
    found = 0
    for number in os.listdir(f"/proc/{server.pid}/fd"):
        try:
            found += os.readlink(f"/proc/{server.pid}/fd/{number}").startswith("socket:")
        except FileNotFoundError:
            continue
    return found


def settle(server, count, seconds=15):
    """Until no more than so many sockets are open."""
    deadline = time.monotonic() + seconds
    while (found := sockets(server)) > count:
        assert time.monotonic() < deadline, f"{found} sockets are open, there were {count}"
        time.sleep(0.02)


def unharmed(server, before):
    """before: rss and sockets. Both are back, and honest clients are served on either side."""
    settle(server, before[1])
    serve_honestly(server)
    conn = Conn(server.bootstrap, timeout=5)
    assert conn.alive() == "open"
    conn.close()
    grown = server.rss() - before[0]
    assert grown < GROWTH, f"resident memory grew by {grown >> 20} MiB"


@pytest.fixture(scope="module")
def iggy_shared():
    with Server(iggy=True, READ_TIMEOUT_SECS=2, WRITE_TIMEOUT_SECS=3) as running:
        yield running


@pytest.fixture
def iggy(iggy_shared):
    """An Iggy server with the stream and topic that iggy_client.py names. It must be unharmed after each test."""
    prepare(iggy_shared)
    before = iggy_shared.rss(), sockets(iggy_shared)
    yield iggy_shared
    unharmed(iggy_shared, before)

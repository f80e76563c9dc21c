"""Servers for the hostile suite. A test that needs other settings makes its own."""

import resource

import pytest
from kwire import Conn
from server import Server


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
    """After each test it must be alive and must not have grown by more than 64 MiB."""
    before = shared.rss()
    yield shared
    conn = Conn(shared.bootstrap, timeout=5)
    assert conn.alive() == "open"
    conn.close()
    grown = shared.rss() - before
    assert grown < 64 << 20, f"resident memory grew by {grown >> 20} MiB"

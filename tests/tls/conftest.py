"""Roots and certificates, and servers that show them."""

import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "clients"), os.path.join(os.path.dirname(HERE), "iggy")]
from authority import Authority, files_of  # noqa: E402
from server import Server  # noqa: E402


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    """The root that everyone here trusts."""
    return Authority(tmp_path_factory.mktemp("roots"), "root")


@pytest.fixture(scope="session")
def stranger(tmp_path_factory):
    """A root that nobody trusts."""
    return Authority(tmp_path_factory.mktemp("roots"), "stranger")


@pytest.fixture(scope="session")
def secure(authority):
    """A server by TLS, for Iggy clients as well."""
    with Server(iggy=True, IGGY_LISTEN_TLS="true", INSTANCE_ID=1, **files_of(authority.issue())) as server:
        yield server


@pytest.fixture(scope="session")
def mutual(authority):
    """A server by mutual TLS; Iggy clients need no certificate all the same."""
    with Server(iggy=True, IGGY_LISTEN_TLS="true", INSTANCE_ID=1, **files_of(authority.issue(), authority.ca)) as server:
        yield server

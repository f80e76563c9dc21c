"""Starts that can't be: one clear line, exit code 1, within 15 s, and never the password (A-34, A-38)."""

import os
import re
import socket
import subprocess
import time

import pytest
from bridge import GENERATIONS, gateway
from server import ROOT_PASSWORD, ROOT_USER, Server, free_ports

SECONDS = 15.0
SCHEDULING = 1.5  # what a loaded machine may add
SECRET = "not-the-password-77"


@pytest.fixture(scope="module", params=GENERATIONS)
def server(request):
    with Server(iggy=True, IGGY_LISTEN_VERSIONS=request.param) as running:
        yield running


def refused(address, tmp_path, **settings):
    """(last line, whole log) of a gateway that must not start."""
    one = gateway(address, str(tmp_path), **({"IGGY_USERNAME": ROOT_USER, "IGGY_PASSWORD": ROOT_PASSWORD} | settings))
    began = time.monotonic()
    one.spawn()
    try:
        status = one.process.wait(SECONDS + SCHEDULING)
    except subprocess.TimeoutExpired:
        one.kill()
        pytest.fail(f"still there after {time.monotonic() - began:.1f} s: {one.log()}")
    log = one.log()
    lines = [line for line in log.splitlines() if "can't start" in line]
    assert status == 1, log
    assert len(lines) == 1 and lines[0] == log.splitlines()[-1], log
    assert "listening" not in log
    assert SECRET not in log and ROOT_PASSWORD not in log
    return lines[0]


def test_a_server_that_is_not_there(tmp_path):
    port = free_ports()
    line = refused(f"127.0.0.1:{port}", tmp_path)
    assert f"can't connect to the Iggy server at 127.0.0.1:{port}: connection refused" in line


def test_a_wrong_password(server, tmp_path):
    line = refused(server.iggy_address, tmp_path, IGGY_PASSWORD=SECRET)
    assert re.search(r"can't log in with this user name and password to the Iggy server at \S+: .*InvalidCredentials", line)


def test_a_user_that_is_not_there(server, tmp_path):
    assert "can't log in" in refused(server.iggy_address, tmp_path, IGGY_USERNAME="nobody", IGGY_PASSWORD=SECRET)


def test_a_port_that_never_answers(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = "127.0.0.1:%d" % silent.getsockname()[1]
        assert f"can't connect to the Iggy server at {address}" in refused(address, tmp_path)


def test_tls_wanted_from_a_port_without_it(server, tmp_path):
    assert re.search(r"can't connect to the Iggy server at \S+: no TLS", refused(server.iggy_address, tmp_path, IGGY_TLS_ENABLED="true"))


def test_a_name_that_nobody_has(tmp_path):
    assert "can't connect to the Iggy server at nobody.invalid:8090" in refused("nobody.invalid:8090", tmp_path)


def test_a_server_that_speaks_something_else(tmp_path):
    with Server(BACKEND="stub") as kafka:  # takes Kafka's frames only
        assert "can't connect to the Iggy server" in refused(kafka.bootstrap, tmp_path)


def test_a_server_that_comes_within_the_tries_is_taken(tmp_path):
    folders = [tmp_path / name for name in ("server", "gateway")]
    for folder in folders:
        os.makedirs(folder)
    server = Server(str(folders[0]), iggy=True)
    server.iggy_port = free_ports()
    one = gateway(server.iggy_address, str(folders[1]), IGGY_USERNAME=ROOT_USER, IGGY_PASSWORD=ROOT_PASSWORD)
    one.spawn()
    with server.start():
        one.port = one._listening("Kafka", time.monotonic() + SECONDS)
        assert one.stop() == 0

"""Real Kafka clients by TLS and mutual TLS. H-7."""

import itertools
import os
import re
import socket
import ssl
import struct

import pytest
from authority import files_of
from clients import CLIENTS, Kcat, Refused, Trust
from kwire import Conn
from server import Server

API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 7, -1)  # length, key, version, correlation id, no client id
_topics = (f"tls-{number}" for number in itertools.count())


@pytest.fixture(params=CLIENTS)
def client(request):
    return CLIENTS[request.param]


@pytest.fixture(params=sorted(CLIENTS.keys() - {"franz-go"}))  # which can't be told to give up soon
def refused(request):
    """refused(server, trust): this client can't write there."""

    def check(server, trust):
        with pytest.raises(Refused):
            CLIENTS[request.param](server.bootstrap, trust, next(_topics), seconds=4).send(["x"])

    return check


def by_tls(server, trust):
    """A wire client by TLS."""
    conn = Conn(server.bootstrap)
    conn.s = trust.context().wrap_socket(conn.s, server_hostname="localhost")
    return conn


@pytest.mark.parametrize("way", ["tls", "mutual"])
def test_every_client_writes_and_reads(request, client, way, authority):
    server = request.getfixturevalue("secure" if way == "tls" else "mutual")
    trust = Trust(authority.ca, authority.issue() if way == "mutual" else None)
    values = [f"value {number} " + "v" * (number % 100) for number in range(500)]
    one = client(server.bootstrap, trust, next(_topics))
    one.send(values)
    assert one.receive(len(values)) == values


@pytest.mark.parametrize("name", ["librdkafka", "kafka-python", "aiokafka"])
def test_a_batch_of_5_mb_goes_in_and_out(name, secure, authority):
    one = CLIENTS[name](secure.bootstrap, Trust(authority.ca), next(_topics))
    value = os.urandom(2_500_000).hex()
    one.send([value])
    assert one.receive(1) == [value]


def test_a_server_that_a_client_does_not_trust_is_refused_by_it(refused, secure, stranger):
    refused(secure, Trust(stranger.ca))


def test_a_client_without_a_certificate_is_refused_where_one_is_wanted(refused, mutual, authority):
    refused(mutual, Trust(authority.ca))


def test_a_client_with_a_certificate_from_elsewhere_is_refused(refused, mutual, authority, stranger):
    refused(mutual, Trust(authority.ca, stranger.issue()))


def test_an_expired_certificate_of_a_client_is_refused(mutual, authority):
    with pytest.raises(Refused):
        Kcat(mutual.bootstrap, Trust(authority.ca, authority.issue(days=-1)), next(_topics), seconds=4).send(["x"])


def closed_without_an_answer(server, data):
    """What a socket that sent data gets back until the server closes it."""
    with socket.create_connection(("127.0.0.1", server.port), 10) as plain:
        plain.sendall(data)
        found = b""
        try:
            while more := plain.recv(4096):
                found += more
        except ConnectionResetError:
            pass
        return found


def test_who_does_not_speak_tls_is_closed_without_harm(secure, authority):
    steady = by_tls(secure, Trust(authority.ca))
    for data in (API_VERSIONS, b"GET / HTTP/1.1\r\n\r\n", bytes(4096), b"\x16\x03\x01\xff\xff" + bytes(70000)):
        found = closed_without_an_answer(secure, data)
        assert found == b"" or found[0] == 21, found  # 21: an alert of TLS (RFC 8446, 5.1)
    assert steady.rq("ApiVersions", 3, {"name": "tests", "ver": "1"})["err"] == 0
    steady.close()


def test_a_plain_kafka_client_finds_no_server_there(secure):
    class Plain(Trust):
        def librdkafka(self):
            return {"security.protocol": "plaintext"}

    with pytest.raises(Refused):
        Kcat(secure.bootstrap, Plain(""), next(_topics), seconds=4).send(["x"])


def test_a_client_by_tls_is_closed_at_a_plain_port(authority):
    with Server(INSTANCE_ID=1) as plain, pytest.raises((ssl.SSLError, OSError)):
        by_tls(plain, Trust(authority.ca))


def test_who_never_shakes_hands_is_closed_at_the_read_deadline(authority):  # B-11
    with Server(INSTANCE_ID=1, READ_TIMEOUT_SECS=1, **files_of(authority.issue())) as server:
        assert closed_without_an_answer(server, b"") == b""
        assert closed_without_an_answer(server, b"\x16\x03\x01") == b""


def test_tls_older_than_1_2_is_refused(secure, authority):
    context = Trust(authority.ca).context()
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    with socket.create_connection(("127.0.0.1", secure.port), 10) as plain, pytest.raises(ssl.SSLError):
        context.wrap_socket(plain, server_hostname="localhost")


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_tls_1_2_and_1_3_are_spoken(version, secure, authority):
    conn = Conn(secure.bootstrap)
    context = Trust(authority.ca).context()
    context.minimum_version = context.maximum_version = version
    conn.s = context.wrap_socket(conn.s, server_hostname="localhost")
    assert conn.rq("ApiVersions", 3, {"name": "tests", "ver": "1"})["err"] == 0


@pytest.mark.parametrize("way, said", [("secure", "on"), ("mutual", "mutual")])
def test_the_start_line_says_tls(request, way, said):
    log = request.getfixturevalue(way).log()
    assert re.search(rf'"listening for Kafka clients" .* tls={said} ', log)
    assert re.search(r'"listening for Iggy clients" .* tls=on ', log)

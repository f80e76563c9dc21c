"""A gateway that connects to its Iggy server by TLS: IGGY_TLS_ENABLED, IGGY_TLS_DOMAIN, IGGY_TLS_CA_FILE (A-23 to A-25), and starts that fail (A-34)."""

import itertools
import os
import socket
import ssl
import threading
import time

import pytest
from bridge import GENERATIONS, Bridge, gateway
from authority import files_of
from clients import Kcat, Librdkafka, Trust
from confluent_kafka import Consumer, Producer, TopicPartition
from hangup import OFF, hang_up
from server import ROOT_PASSWORD, ROOT_USER, Server

_topics = (f"bridge-{number}" for number in itertools.count())
LOGIN = {"IGGY_USERNAME": ROOT_USER, "IGGY_PASSWORD": ROOT_PASSWORD}


def by_tls(authority, certificate):
    """Settings of an Iggy server that shows the certificate, and of a gateway that trusts its root."""
    return {"IGGY_LISTEN_TLS": "true"} | files_of(certificate), {"IGGY_TLS_ENABLED": "true", "IGGY_TLS_CA_FILE": authority.ca}


@pytest.fixture(scope="module", params=GENERATIONS)
def bridge(request, authority):
    """TLS on both hops."""
    certificate = authority.issue()
    server, hop = by_tls(authority, certificate)
    with Bridge(request.param, server_settings=server, **hop, **files_of(certificate)) as both:
        yield both


@pytest.mark.parametrize("client", [Kcat, Librdkafka])
def test_records_go_both_ways_by_tls_on_both_hops(bridge, authority, client):
    one = client(bridge.bootstrap, Trust(authority.ca), next(_topics))
    values = [f"value {number} " + "v" * (number % 300) for number in range(2000)]
    one.send(values)
    assert one.receive(len(values)) == values


def test_what_the_gateway_wrote_is_on_the_server(bridge, authority):
    topic, trust = next(_topics), Trust(authority.ca)
    Librdkafka(bridge.bootstrap, trust, topic).send(["one", "two"])
    assert Kcat(bridge.server.bootstrap, trust, topic).receive(2) == ["one", "two"]


def test_a_batch_of_5_mb_goes_through_both_hops(bridge, authority):
    one = Librdkafka(bridge.bootstrap, Trust(authority.ca), next(_topics))
    value = os.urandom(2_500_000).hex()
    one.send([value])
    assert one.receive(1) == [value]


def test_a_server_that_restarts_with_another_certificate_is_used_again(authority, tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"

    def install():
        made = authority.issue()
        cert.write_bytes(open(made.cert, "rb").read())
        key.write_bytes(open(made.key, "rb").read())

    install()
    server = {"IGGY_LISTEN_TLS": "true", "TLS_CERT_FILE": cert, "TLS_KEY_FILE": key}
    with Bridge("0.12", server_settings=server, IGGY_TLS_ENABLED="true", IGGY_TLS_CA_FILE=authority.ca) as both:
        settings = {"bootstrap.servers": both.bootstrap}
        producer, failed = Producer(settings), []

        def send(value):
            producer.produce("back", value, partition=0, on_delivery=lambda error, _: error and failed.append(error))

        send("before")
        assert producer.flush(30) == 0
        install()
        assert both.server.stop() == 0
        send("meanwhile")
        both.server.start()
        send("after")
        assert producer.flush(40) == 0 and failed == []
        consumer = Consumer(settings | {"group.id": "none", "enable.auto.commit": False})
        consumer.assign([TopicPartition("back", 0, 0)])
        found = [message.value() for message in consumer.consume(3, 30)]
        assert found[0] == b"before" and set(found) == {b"before", b"meanwhile", b"after"}  # a producer that repeats keeps no order
        consumer.close()


# ---- whose certificate is good for the start ----


@pytest.fixture(scope="module")
def named(authority):
    """An Iggy server whose certificate is good for a name only, and not for the IP that it is reached by."""
    with Server(iggy=True, INSTANCE_ID=2, **by_tls(authority, authority.issue("DNS:iggy.example.com"))[0]) as server:
        yield server


@pytest.fixture(scope="module")
def plain():
    with Server(iggy=True, INSTANCE_ID=2) as server:
        yield server


def starts(address, **settings):
    with gateway(address, IGGY_TLS_ENABLED="true", **LOGIN, **settings):
        return True


def fails(address, reason, **settings):
    """The start ends within 15 s, with one line that names address and cause."""
    server = gateway(address, IGGY_TLS_ENABLED="true", LOG_LEVEL="error", **LOGIN, **settings).spawn()
    began = time.monotonic()
    try:
        assert server.process.wait(16) == 1
        assert time.monotonic() - began < 15.5  # the process itself takes some
    finally:
        server.process.kill()
    lines = server.log().splitlines()
    assert len(lines) == 1, lines
    assert " error app \"can't start the bridge\" " in lines[0]
    assert f"can't connect to the Iggy server at {address}: " in lines[0]
    assert reason in lines[0] and ROOT_PASSWORD not in lines[0]


def test_the_name_is_that_of_the_address_unless_one_is_set(named, secure, authority):
    assert starts(secure.iggy_address, IGGY_TLS_CA_FILE=authority.ca)
    assert starts(f"localhost:{secure.iggy_port}", IGGY_TLS_CA_FILE=authority.ca)
    assert starts(named.iggy_address, IGGY_TLS_CA_FILE=authority.ca, IGGY_TLS_DOMAIN="iggy.example.com")
    fails(named.iggy_address, "the certificate is not good: IP address mismatch", IGGY_TLS_CA_FILE=authority.ca)
    fails(named.iggy_address, "the certificate is not good: hostname mismatch", IGGY_TLS_CA_FILE=authority.ca, IGGY_TLS_DOMAIN="iggy.example.org")


def test_without_a_file_the_roots_of_the_system_are_trusted(secure, authority, stranger, monkeypatch):
    monkeypatch.setenv("SSL_CERT_DIR", "/nowhere")
    monkeypatch.setenv("SSL_CERT_FILE", authority.ca)  # where OpenSSL looks for them
    assert starts(secure.iggy_address)
    monkeypatch.setenv("SSL_CERT_FILE", stranger.ca)
    fails(secure.iggy_address, "the certificate is not good: unable to get local issuer certificate")


def test_an_unknown_root_fails_the_start(secure, stranger):
    fails(secure.iggy_address, "the certificate is not good: unable to get local issuer certificate", IGGY_TLS_CA_FILE=stranger.ca)


def test_an_expired_certificate_fails_the_start(authority):
    with Server(iggy=True, INSTANCE_ID=2, **by_tls(authority, authority.issue(days=-1))[0]) as server:
        fails(server.iggy_address, "the certificate is not good: certificate has expired", IGGY_TLS_CA_FILE=authority.ca)


def test_a_plain_port_fails_the_start(plain, authority):
    fails(plain.iggy_address, "no TLS: ", IGGY_TLS_CA_FILE=authority.ca)


def test_a_plain_gateway_fails_the_start_at_a_port_by_tls(secure):
    server = gateway(secure.iggy_address, LOG_LEVEL="error", **LOGIN).spawn()
    assert server.process.wait(16) == 1
    assert f"can't connect to the Iggy server at {secure.iggy_address}: " in server.log()
    assert len(server.log().splitlines()) == 1


def test_a_server_that_wants_a_certificate_fails_the_start(authority):
    """The gateway has none to show; TLS 1.3 lets a client know only after its handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own = authority.issue()
    context.load_cert_chain(own.cert, own.key)
    context.load_verify_locations(authority.ca)
    context.verify_mode = ssl.CERT_REQUIRED
    with listening(lambda client: context.wrap_socket(client, server_side=True)) as address:
        fails(address, "", IGGY_TLS_CA_FILE=authority.ca)


def test_a_server_that_never_shakes_hands_fails_the_start(authority):
    with listening(lambda client: client.recv(1 << 16) and client) as address:
        fails(address, "no answer in time", IGGY_TLS_CA_FILE=authority.ca)


class listening:
    """A port; what answer(client) returns is kept until the end."""

    def __init__(self, answer):
        self.answer, self.kept = answer, []
        self.socket = socket.create_server(("127.0.0.1", 0))

    def _serve(self):
        while True:
            try:
                client = self.socket.accept()[0]
            except OSError:
                return
            try:
                self.kept.append(self.answer(client))
            except OSError:
                client.close()

    def __enter__(self):
        threading.Thread(target=self._serve, daemon=True).start()
        return "127.0.0.1:%d" % self.socket.getsockname()[1]

    def __exit__(self, *_):
        self.socket.close()


def test_plain_kafka_clients_reach_a_server_by_tls_and_a_hang_up_changes_nothing(secure, authority):
    with gateway(secure.iggy_address, IGGY_TLS_ENABLED="true", IGGY_TLS_CA_FILE=authority.ca, **LOGIN) as one:
        hang_up(one, OFF)
        client = Librdkafka(one.bootstrap, Plain(), next(_topics))
        client.send(["x"])
        assert client.receive(1) == ["x"]


class Plain(Trust):
    def __init__(self):
        super().__init__("")

    def librdkafka(self):
        return {}

"""The official Iggy SDKs by TLS (rustls, all of them), on the log that Kafka clients use by TLS."""

import itertools
import socket
import ssl

import pytest
from clients import Librdkafka, Trust
from sdk import PASSWORD, SDKS, USER, Client, message, payloads

_topics = (f"iggy-{number}" for number in itertools.count())


@pytest.fixture(params=SDKS)
def sdk(request):
    return request.param


@pytest.mark.parametrize("way", ["secure", "mutual"])
def test_every_sdk_reads_what_kafka_clients_wrote_and_writes_what_they_read(request, sdk, way, authority):
    """Mutual TLS is for Kafka clients: an Iggy client logs in, and has no certificate to show."""
    server, topic = request.getfixturevalue(way), next(_topics)
    kafka = Librdkafka(server.bootstrap, Trust(authority.ca, authority.issue()), topic)
    kafka.send(["from kafka"])
    client = Client(sdk, server.iggy_address, ca=authority.ca)
    try:
        client.login(user=USER, password=PASSWORD)
        client.send(stream="kafka", topic=topic, to={"partition": 0}, messages=[message("from an SDK"), message(b"v" * 1_000_000)])
        found = client.poll(stream="kafka", topic=topic, partition=0, consumer="1", how="first", count=10)
        assert payloads(found) == [b"from kafka", b"from an SDK", b"v" * 1_000_000]
    finally:
        client.close()
    assert kafka.receive(3) == ["from kafka", "from an SDK", "v" * 1_000_000]


def test_a_plain_client_is_closed_and_leaves_no_harm(secure, authority):
    with socket.create_connection(("127.0.0.1", secure.iggy_port), 10) as plain:
        plain.sendall(bytes(256))
        found = plain.recv(4096)
        assert found == b"" or found[0] == 21  # an alert of TLS
    context = Trust(authority.ca).context()
    with context.wrap_socket(socket.create_connection(("127.0.0.1", secure.iggy_port), 10), server_hostname="localhost") as client:
        assert client.version() in ("TLSv1.2", "TLSv1.3")
        assert client.getpeercert()["issuer"] == ((("commonName", "root"),),)
        with pytest.raises(ssl.SSLError), socket.create_connection(("127.0.0.1", secure.iggy_port), 10) as other:
            context.wrap_socket(other, server_hostname="iggy.example.com")

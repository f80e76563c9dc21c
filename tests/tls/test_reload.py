"""SIGHUP: the files are read again, while clients are connected. H-7."""

import shutil
import signal
import socket
import ssl
import threading
import time

import pytest
from authority import files_of
from clients import Librdkafka, Trust
from confluent_kafka import Consumer, Producer, TopicPartition
from hangup import BAD, GOOD, OFF, hang_up
from kwire import Conn
from server import Server


@pytest.fixture
def files(tmp_path, authority):
    """install(certificate, client_ca): the files that the server's settings name."""

    def install(certificate, client_ca=authority.ca):
        for source, name in ((certificate.cert, "cert.pem"), (certificate.key, "key.pem"), (client_ca, "roots.pem")):
            shutil.copy(source, tmp_path / name)

    install.settings = {"TLS_CERT_FILE": tmp_path / "cert.pem", "TLS_KEY_FILE": tmp_path / "key.pem"}
    install.mutual = install.settings | {"TLS_CLIENT_CA_FILE": tmp_path / "roots.pem"}
    return install


def connect(server, trust, port=None):
    conn = Conn(f"127.0.0.1:{port}" if port else server.bootstrap)
    conn.s = trust.context().wrap_socket(conn.s, server_hostname="localhost")
    return conn


def serial(conn):
    return conn.s.getpeercert()["serialNumber"]


def answers(conn):
    return conn.rq("ApiVersions", 3, {"name": "tests", "ver": "1"})["err"] == 0


def test_old_connections_live_and_new_ones_see_the_new_certificate(authority, files):
    trust = Trust(authority.ca)
    files(authority.issue())
    with Server(INSTANCE_ID=1, iggy=True, IGGY_LISTEN_TLS="true", **files.settings) as server:
        old, old_iggy = connect(server, trust), connect(server, trust, server.iggy_port)
        assert serial(old) == serial(old_iggy)
        files(authority.issue())
        assert serial(connect(server, trust)) == serial(old)  # not before it is asked to
        hang_up(server, GOOD)
        new, new_iggy = connect(server, trust), connect(server, trust, server.iggy_port)
        assert answers(old) and answers(new)
        assert serial(new) == serial(new_iggy) != serial(old)
        for conn in (old, new, old_iggy, new_iggy):
            conn.close()


def test_files_that_are_not_good_are_one_error_line_and_the_old_ones_stay(authority, files):
    trust = Trust(authority.ca)
    files(authority.issue())
    with Server(INSTANCE_ID=1, **files.settings) as server:
        first = serial(connect(server, trust))
        cert, key = files.settings["TLS_CERT_FILE"], files.settings["TLS_KEY_FILE"]
        other = authority.issue()
        spoilings = {
            f'reason="{key} is not the key of the certificate"': lambda: shutil.copy(other.key, key),
            f'reason="{key}: No such file or directory"': key.unlink,
            f'reason="{cert}: ': lambda: cert.write_text("no certificate"),
        }
        for reason, spoil in spoilings.items():
            spoil()
            hang_up(server, BAD)
            line = server.log().splitlines()[-1]
            assert " error app " in line and reason in line
            assert f"IGGY_KAFKA_TLS_CERT_FILE={cert} IGGY_KAFKA_TLS_KEY_FILE={key}" in line
            assert serial(connect(server, trust)) == first
        files(other)
        hang_up(server, GOOD)
        assert serial(connect(server, trust)) != first


def test_new_roots_for_clients_hold_for_new_connections(authority, stranger, files):
    ours, theirs = Trust(authority.ca, authority.issue()), Trust(authority.ca, stranger.issue())
    files(authority.issue(), authority.ca)
    with Server(INSTANCE_ID=1, **files.mutual) as server:
        old = connect(server, ours)
        files(authority.issue(), stranger.ca)
        hang_up(server, GOOD)
        new = connect(server, theirs)
        assert answers(old) and answers(new)
        refused = connect(server, ours)  # by TLS 1.3 a client learns of it only when it reads
        with pytest.raises(ssl.SSLError):
            refused.s.settimeout(10)
            refused.s.recv(1)


def test_a_session_from_before_is_not_taken_up_again(authority, stranger, files):
    """Else a client that new roots exclude would come in with a ticket of the old ones."""
    files(authority.issue(), authority.ca)
    with Server(INSTANCE_ID=1, **files.mutual) as server:
        context = Trust(authority.ca, authority.issue()).context()
        context.maximum_version = ssl.TLSVersion.TLSv1_2  # where a session is there when the handshake ends

        def shake(session):
            plain = socket.create_connection(("127.0.0.1", server.port), 10)
            return context.wrap_socket(plain, server_hostname="localhost", session=session)

        session = shake(None).session
        assert shake(session).session_reused
        files(authority.issue(), stranger.ca)
        hang_up(server, GOOD)
        with pytest.raises(ssl.SSLError):
            shake(session)


def test_nothing_is_lost_when_the_files_are_read_again_and_again(authority, files):
    trust = Trust(authority.ca)
    files(authority.issue())
    with Server(INSTANCE_ID=1, **files.settings) as server:
        settings = {"bootstrap.servers": server.bootstrap} | trust.librdkafka()
        producer = Producer(settings | {"linger.ms": 1})
        done, failed = threading.Event(), []

        def produce():
            for number in range(20000):
                producer.produce("busy", str(number), on_delivery=lambda error, _: error and failed.append(error))
                if number % 100 == 0:
                    producer.poll(0.001)
            producer.flush(30)
            done.set()

        writer = threading.Thread(target=produce)
        writer.start()
        rounds = 0
        while not done.is_set() or rounds < 20:
            files(authority.issue())
            hang_up(server, GOOD)
            assert answers(connect(server, trust))
            rounds += 1
        writer.join()
        assert failed == []
        consumer = Consumer(settings | {"group.id": "none", "enable.auto.commit": False})
        consumer.assign([TopicPartition("busy", 0, 0)])
        assert [int(message.value()) for message in consumer.consume(20000, 30)] == list(range(20000))
        consumer.close()


def test_without_tls_nothing_happens_but_a_line(authority):
    with Server(INSTANCE_ID=1) as server:
        conn = Conn(server.bootstrap)
        hang_up(server, OFF)
        assert answers(conn) and answers(Conn(server.bootstrap))


def test_a_hang_up_while_it_drains_does_not_end_it(authority):  # B-50
    with Server(INSTANCE_ID=1, **files_of(authority.issue())) as server:
        busy = connect(server, Trust(authority.ca))
        assert answers(busy)
        server.process.send_signal(signal.SIGTERM)
        while server.process.poll() is None:
            server.process.send_signal(signal.SIGHUP)
            time.sleep(0.0005)
        assert server.process.returncode == 0
        assert server.log().splitlines()[-1].endswith('"stopped"')


def test_a_client_that_connects_again_goes_on(authority, files):
    files(authority.issue())
    with Server(INSTANCE_ID=1, **files.settings) as server:
        client = Librdkafka(server.bootstrap, Trust(authority.ca), "again")
        client.send(["before"])
        files(authority.issue())
        hang_up(server, GOOD)
        client.send(["after"])
        assert client.receive(2) == ["before", "after"]

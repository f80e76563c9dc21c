"""What outlives a connection and what outlives the server."""

import socket
import threading

import pytest
from sdk import PASSWORD, USER, Client, eventually, message, offsets, payloads
from server import ROOT_PASSWORD, ROOT_USER, Server


@pytest.fixture
def own(tmp_path):
    """A server of this test's own."""
    with Server(folder=str(tmp_path), iggy=True) as server:
        yield server


def log_in(sdk, server, user=ROOT_USER, password=ROOT_PASSWORD):
    client = Client(sdk, server.iggy_address)
    client.login(user=user, password=password)
    return client


@pytest.mark.parametrize("end", ["SIGTERM", "kill -9"])
def test_everything_acknowledged_is_there_after_a_restart(own, sdk, end):
    client = log_in(sdk, own)
    client.create_stream(name="s")
    client.create_topic(stream="s", topic="t", partitions=3, expiry_us=3_600_000_000)
    client.add_partitions(stream="s", topic="t", count=1)
    headers = [("string", "n", "uint32", "7")]
    for index in range(20):
        client.send(stream="s", topic="t", to={"partition": 3}, messages=[message(f"m{index}", headers, id=index + 1)])
    client.create_group(stream="s", topic="t", group="g")
    client.store_offset(stream="s", topic="t", partition=3, consumer="c", offset=11)
    client.create_user(name="someone", password="a-password", permissions={"global": {"poll_messages": True}})
    client.create_user(name="gone", password="a-password")
    client.delete_user(user="gone")
    client.change_password(user="someone", old="a-password", new="another-password")
    token = client.create_token(name="token")
    before = client.poll(stream="s", topic="t", partition=3, consumer="c", how="first", count=100)
    client.close()
    if end == "SIGTERM":
        assert own.stop() == 0
    else:
        own.kill()
    own.start()
    client = log_in(sdk, own)
    assert client.streams().count("s") == 1
    topic = client.topic(stream="s", topic="t")
    assert [one["messages"] for one in topic["partitions"]] == [0, 0, 0, 20]
    assert topic["expiry_us"] == 3_600_000_000
    assert client.poll(stream="s", topic="t", partition=3, consumer="c", how="first", count=100) == before
    assert client.get_offset(stream="s", topic="t", partition=3, consumer="c") == 11
    assert offsets(client.poll(stream="s", topic="t", partition=3, consumer="c", how="next", count=1)) == [12]
    assert client.groups(stream="s", topic="t") == ["g"]
    assert sorted(set(client.users()) - {ROOT_USER}) == ["someone"]
    assert client.tokens() == ["token"]
    assert client.send(stream="s", topic="t", to={"partition": 3}, messages=[message("after")]) == [3, 20]
    other = log_in(sdk, own, "someone", "another-password")
    assert payloads(other.poll(stream="s", topic="t", partition=3, consumer="x", how="last", count=1)) == [b"after"]
    assert other.refusal("send", stream="s", topic="t", to={"partition": 3}, messages=[message("x")]) == 41
    by_token = Client(sdk, own.iggy_address)
    by_token.login_token(token=token)
    assert by_token.me()["user"] == 0
    for one in (client, other, by_token):
        one.close()


class Cut:
    """Passes bytes between a client and the server, until it is told to cut every connection."""

    def __init__(self, address):
        host, port = address.split(":")
        self.server, self.pairs, self.count = (host, int(port)), [], 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                pair = client, socket.create_connection(self.server)
            except OSError:
                return
            self.count += 1
            self.pairs.append(pair)
            for source, target in (pair, pair[::-1]):
                threading.Thread(target=self._pass, args=(source, target), daemon=True).start()

    @staticmethod
    def _pass(source, target):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
        except OSError:
            pass
        for one in (source, target):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        for pair in self.pairs:
            for one in pair:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        self.pairs.clear()

    def close(self):
        self.listener.close()
        self.cut()


@pytest.mark.parametrize("sdk", ["python-0.12", "rust-0.12"], indirect=True)
def test_a_client_of_0_12_takes_its_session_up_again_without_a_password(server, connect, sdk):
    """After a connection is lost the SDK binds its session again; the server remembers it."""
    between = Cut(server.iggy_address)
    client = connect(USER, PASSWORD, address=between.address)
    name = f"cut-{sdk}"
    client.create_stream(name=name)
    client.create_topic(stream=name, topic="t", partitions=1)
    for index in range(3):
        client.send(stream=name, topic="t", to={"partition": 0}, messages=[message(f"m{index}")])
        between.cut()
        eventually("an answer after the cut", client.answers)
    assert between.count >= 4
    found = client.poll(stream=name, topic="t", partition=0, consumer="c", how="first", count=100)
    assert payloads(found) == [b"m%d" % index for index in range(3)]
    client.delete_stream(stream=name)
    between.close()

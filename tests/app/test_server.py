"""Start and end of the whole server: its lines, its exit codes, and what ends it."""
import json
import re
import signal
import socket
import struct

import pytest
from gateway import Gateway, run

API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 7, -1)  # length, key, version, correlation id, no client id


def answer(client):
    """One answer's bytes behind its length."""
    with client.makefile("rb") as stream:
        return stream.read(struct.unpack(">i", stream.read(4))[0])


def test_the_ready_line_names_address_backend_and_ids(tmp_path):
    with Gateway(tmp_path, "--advertised-host=broker.example.com", INSTANCE_ID="7", CLUSTER_ID="testing") as gateway:
        assert f" info  app \"listening for Kafka clients\" address=127.0.0.1:{gateway.port} " in gateway.ready
        assert f" advertised=broker.example.com:{gateway.port} " in gateway.ready
        assert " cluster_id=testing instance_id=7 " in gateway.ready
        assert f" data_dir={tmp_path}/data " in gateway.ready
        assert gateway.lines == [gateway.ready]
        assert gateway.stop() == 0


def test_it_answers_and_ends_well_on_either_signal(tmp_path):  # A-40, B-51
    for number in (signal.SIGINT, signal.SIGTERM):
        with Gateway(tmp_path, INSTANCE_ID="0") as gateway:
            with socket.create_connection(("127.0.0.1", gateway.port)) as client:
                client.sendall(API_VERSIONS)
                assert answer(client)[:6] == struct.pack(">ih", 7, 0)
                gateway.send_signal(number)
                assert client.recv(1) == b""  # idle between frames: closed at once (B-50)
            assert gateway.wait() == 0
            assert f'"stopping" signal={signal.Signals(number).name}' in gateway.lines[-2]
            assert gateway.lines[-1].endswith(' info  app "stopped"\n')


def test_the_stub_needs_no_folder(tmp_path):
    with Gateway(tmp_path, BRIDGE_ENABLED="false") as gateway:
        assert " backend=stub " in gateway.ready
        assert gateway.stop() == 0
    assert list(tmp_path.iterdir()) == []


def test_log_lines_can_be_json(tmp_path):
    with Gateway(tmp_path, LOG_FORMAT="json") as gateway:
        assert gateway.stop() == 0
    lines = [json.loads(line) for line in gateway.lines]
    assert [line["level"] for line in lines] == ["warn", "info", "info", "info"]
    assert lines[0]["message"].startswith("IGGY_KAFKA_INSTANCE_ID is not set")
    assert lines[1]["address"] == f"127.0.0.1:{gateway.port}"
    assert lines[1]["instance_id"] == 0


def test_the_log_level_silences_what_is_below(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = run(f"--bind-addr={address}", f"--data-dir={tmp_path}/data", LOG_LEVEL="error")
    assert len(result.stderr.splitlines()) == 1


def test_an_address_in_use_is_one_clear_line_and_exit_code_1(tmp_path):  # B-51
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for backend in ("embedded", "stub"):
            result = run(f"--bind-addr={address}", f"--data-dir={tmp_path}/data", BACKEND=backend, INSTANCE_ID="0",
                         LOG_LEVEL="error")
            assert result.returncode == 1
            assert result.stderr[24:] == f' error app "can\'t listen" address={address} reason="another process uses it"\n'


def test_an_address_of_another_machine_is_refused(tmp_path):
    result = run("--bind-addr=192.0.2.1:9093", f"--data-dir={tmp_path}/data", LOG_LEVEL="error")
    assert result.returncode == 1
    assert result.stderr[24:] == ' error app "can\'t listen" address=192.0.2.1:9093 reason="Cannot assign requested address"\n'


def test_a_second_server_on_the_same_folder_is_refused(tmp_path):
    with Gateway(tmp_path) as gateway:
        result = run("--bind-addr=127.0.0.1:0", f"--data-dir={tmp_path}/data", LOG_LEVEL="error")
        assert result.returncode == 1
        assert " error app \"can't open the data folder\" " in result.stderr
        assert len(result.stderr.splitlines()) == 1
        assert gateway.stop() == 0


def test_the_cluster_id_stays_the_same(tmp_path):  # D4-1
    ids = set()
    for _ in range(2):
        with Gateway(tmp_path) as gateway:
            ids.add(gateway.ready.partition("cluster_id=")[2].split(" ")[0])
            assert gateway.stop() == 0
    assert len(ids) == 1 and len(ids.pop()) > 8


def half_a_request(gateway):
    """A connection of which the gateway has read the head of a request that doesn't end."""
    client = socket.create_connection(("127.0.0.1", gateway.port))
    client.sendall(API_VERSIONS + API_VERSIONS[:8])  # one segment: the answer to the first shows that the second has begun
    answer(client)
    return client


def test_the_drain_ends_at_its_deadline(tmp_path):  # A-9, B-50
    with Gateway(tmp_path, SHUTDOWN_DRAIN_TIMEOUT_SECS="0") as gateway, half_a_request(gateway):
        assert gateway.stop() == 0


def test_a_second_signal_ends_the_drain_at_once(tmp_path):
    with Gateway(tmp_path) as gateway, half_a_request(gateway):
        gateway.send_signal(signal.SIGTERM)
        gateway.wait_for_line('"stopping"')
        gateway.send_signal(signal.SIGTERM)
        assert gateway.wait() == -signal.SIGTERM


def test_systemd_is_told_when_it_is_ready_and_when_it_stops(tmp_path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(tmp_path / "notify"))
        notify.settimeout(20)
        with Gateway(tmp_path, NOTIFY_SOCKET=str(tmp_path / "notify")) as gateway:
            assert notify.recv(64) == b"READY=1"
            assert gateway.stop() == 0
            assert notify.recv(64) == b"STOPPING=1"


@pytest.mark.parametrize("number", [signal.SIGPIPE, signal.SIGXFSZ])
def test_signals_about_one_write_do_not_end_it(tmp_path, number):
    with Gateway(tmp_path) as gateway:
        gateway.send_signal(number)
        with socket.create_connection(("127.0.0.1", gateway.port)) as client:
            client.sendall(API_VERSIONS)
            assert answer(client)[:4] == struct.pack(">i", 7)
        assert gateway.stop() == 0


def test_an_iggy_port_in_use_is_one_clear_line_and_exit_code_1(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = run("--bind-addr=127.0.0.1:0", f"--iggy-listen-addr={address}", f"--data-dir={tmp_path}/data", LOG_LEVEL="error",
                     ROOT_PASSWORD="secret")
    assert result.returncode == 1
    assert result.stderr[24:] == (' error app "can\'t listen for Iggy clients (IGGY_KAFKA_IGGY_LISTEN_ADDR, or off)" '
                                  f'address={address} reason="another process uses it"\n')


def test_the_first_start_makes_a_root_user_and_shows_its_password_once(tmp_path):
    for start in (1, 2):
        with Gateway(tmp_path, "--iggy-listen-addr=127.0.0.1:0", INSTANCE_ID="0", ROOT_USERNAME="admin") as gateway:
            assert gateway.stop() == 0
        shown = [line for line in gateway.lines if "password" in line]
        if start == 1:
            assert re.fullmatch(r"iggy-gateway-kafka: made the Iggy user admin with the password [0-9A-Za-z_-]{32} - "
                                r"it is shown this once only\n", shown[0])
        assert len(shown) == (1 if start == 1 else 0)
        assert sum('"listening for Iggy clients" address=127.0.0.1:' in line for line in gateway.lines) == 1


def test_a_root_password_that_was_given_is_never_shown(tmp_path):
    with Gateway(tmp_path, "--iggy-listen-addr=127.0.0.1:0", INSTANCE_ID="0", ROOT_PASSWORD="my-secret-password", LOG_LEVEL="debug") as gateway:
        assert gateway.stop() == 0
    assert not any("my-secret-password" in line or "made the Iggy user" in line for line in gateway.lines)
    for file in (tmp_path / "data").rglob("*"):
        assert not file.is_file() or b"my-secret-password" not in file.read_bytes()


def test_iggy_clients_are_not_listened_for_where_it_says_off(tmp_path):
    with Gateway(tmp_path, "--iggy-listen-addr=off", INSTANCE_ID="0") as gateway:
        assert gateway.stop() == 0
    assert not any("Iggy" in line for line in gateway.lines)

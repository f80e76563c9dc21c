"""What the README says to try works as it is written there: its commands are taken from it and run, on another port."""

import contextlib
import os
import re
import subprocess
import sys

import pytest
from server import BINARY, Server

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
README = os.path.join(os.path.dirname(TESTS), "README.md")


def blocks(title="Three things to try"):
    """(language, text) of every code block of a chapter."""
    with open(README, encoding="utf-8") as file:
        section = file.read().split(f"\n## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"^```(\w*)\n(.*?)^```$", section, re.M | re.S)


def run(command, folder, programs=(), typed=""):
    """What a command prints; programs: folders that come before those of PATH."""
    path = ":".join([*map(str, programs), os.environ["PATH"]])
    environment = {key: value for key, value in os.environ.items() if not key.startswith("IGGY_KAFKA_")} | {"PATH": path}
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, input=typed, capture_output=True, text=True, timeout=40, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def shell(tmp_path):
    """Runs a README command against a server of its own; python3 and kafka-NAME.sh are the installed peers'."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("topics", "console-producer", "console-consumer", "consumer-groups", "get-offsets"):
        script = programs / f"kafka-{name}.sh"
        script.write_text(f'#!/bin/sh\nexec "{TESTS}/peers/kafka-tool.sh" kafka-{name} "$@"\n')
        script.chmod(0o755)
    with Server(str(tmp_path)) as server:

        def run_here(command, more="", typed=""):
            text = command.replace("127.0.0.1:9093", server.bootstrap) + more
            return run(text, tmp_path, [programs, os.path.dirname(sys.executable)], typed)

        run_here.folder = tmp_path
        run_here.server = server
        yield run_here


def commands(block):
    return block[1].strip().split("\n")


def test_kcat_writes_a_line_and_reads_it_back(shell):
    write, read = commands(blocks()[0])
    shell(write)
    assert shell(read) == "hello\n"


def test_kafka_python_creates_a_topic_and_kcat_reads_the_order(shell):
    language, program = blocks()[1]
    assert language == "python" and 'send("orders"' in program and ".get(timeout=5)" in program
    (shell.folder / "orders.py").write_text(program.replace("127.0.0.1:9093", shell.server.bootstrap))
    python, read = commands(blocks()[2])
    assert "offset=0" in shell(python)
    assert shell(read) == "two coffees\n"


def test_kafkas_own_tools(shell):
    create, produce, consume, describe, offsets = commands(blocks()[3])
    assert "Created topic payments" in shell(create)
    shell(produce, typed="one\n")
    written = dict(re.findall(r"payments:(\d):(\d)", shell(offsets)))
    assert sorted(written.values()) == ["0", "0", "1"]
    partition = next(number for number, end in written.items() if end == "1")
    assert shell(consume, " --max-messages 1 --timeout-ms 20000") == "one\n"
    assert re.search(rf"^billing +payments +{partition} +1 +1 +0 ", shell(describe), re.M)


# ---- Iggy clients ----

IGGY = "Iggy SDKs on the embedded log"
BRIDGE = "In front of Iggy"
PROGRAM = "build/release/iggy-gateway-kafka"
LISTENS = {"IGGY_LISTEN_ADDR": "127.0.0.1:0"}


@contextlib.contextmanager
def started(command, folder, **settings):
    """The server that a README command starts, on free ports. Only the command itself may ask for topics to be made."""
    (folder / "server").mkdir()
    server = Server(str(folder / "server"), **{"AUTO_CREATE_TOPICS": "false"} | settings)
    assert PROGRAM in command
    text = "exec env " + command.replace(PROGRAM, '"$0"').replace("127.0.0.1:9094", "127.0.0.1:0")
    with server.start(wrapper=["sh", "-c", text]):
        yield server


def iggy_port(server):
    return re.search(r"listening for Iggy clients.* address=127\.0\.0\.1:(\d+)", server.log())[1]


def sdk_python(version):
    return os.path.join(os.environ["PEERS_HOME"], f"iggy-py-{version}", "bin")


@pytest.mark.parametrize("version", ["0.11", "0.12"])
def test_an_iggy_sdk_reads_what_kcat_wrote_and_back(tmp_path, version):
    (start,) = commands(blocks(IGGY)[0])
    program = blocks(IGGY)[1][1]
    write, both, read = commands(blocks(IGGY)[2])
    with started(start, tmp_path, **LISTENS) as server:
        password = re.search(r"made the Iggy user iggy with the password (\w+) - it is shown this once only", server.log())[1]
        assert '"iggy", "iggy"' in program
        program = program.replace("127.0.0.1:8090", f"127.0.0.1:{iggy_port(server)}").replace('"iggy", "iggy"', f'"iggy", "{password}"')
        (tmp_path / "both.py").write_text(program)
        here = [text.replace("127.0.0.1:9093", server.bootstrap) for text in (write, both, read)]
        assert run(here[0], tmp_path) == ""
        assert run(here[1], tmp_path, [sdk_python(version)]) == "0 from Kafka\n"
        assert run(here[2], tmp_path) == "from Kafka\nfrom Iggy\n"
        started_again = server.log()
        assert server.stop() == 0
        server.start()
        assert "with the password" in started_again and "with the password" not in server.log()


# ---- the bridge ----


@pytest.fixture
def iggy_server(tmp_path):
    """What `./run` in another terminal is: the embedded log with the user iggy."""
    with Server(str(tmp_path), ROOT_PASSWORD="iggy", **LISTENS) as server:
        yield server


def test_kcat_over_the_bridge(tmp_path, iggy_server):
    (start,) = commands(blocks(BRIDGE)[0])
    write, read = commands(blocks(BRIDGE)[1])
    start = start.replace("127.0.0.1:8090", f"127.0.0.1:{iggy_port(iggy_server)}")
    with started(start, tmp_path) as bridge:
        run(write.replace("127.0.0.1:9094", bridge.bootstrap), tmp_path)
        assert run(read.replace("127.0.0.1:9094", bridge.bootstrap), tmp_path) == "over the bridge\n"
        assert run(read.replace("127.0.0.1:9094", iggy_server.bootstrap), tmp_path) == "over the bridge\n"


def test_the_settings_of_the_bridge_are_good(tmp_path):
    settings, check, topics = (blocks(BRIDGE)[i] for i in (2, 3, 4))
    (tmp_path / "bridge.toml").write_text(settings[1])
    (tmp_path / "topics.toml").write_text(topics[1])
    (tmp_path / "iggy-ca.pem").write_text("")
    (command,) = commands(check)
    out = run(command.replace(PROGRAM, BINARY) + " 2>&1", tmp_path)
    assert "IGGY_KAFKA_BACKEND=iggy (file, line 1)" in out and "IGGY_KAFKA_IGGY_PASSWORD=*** (environment)" in out
    assert out.count("(file, line") == settings[1].count(" = ")
    assert "no effect" not in out and "INSTANCE_ID is not set" not in out


def test_the_topic_map_puts_a_topic_where_it_says(tmp_path, iggy_server):
    start, topics = commands(blocks(BRIDGE)[0])[0], blocks(BRIDGE)[4]
    (tmp_path / "topics.toml").write_text(topics[1])
    start = start.replace("127.0.0.1:8090", f"127.0.0.1:{iggy_port(iggy_server)}") + f" --topic-map-path {tmp_path}/topics.toml"
    program = blocks(IGGY)[1][1].replace("127.0.0.1:8090", f"127.0.0.1:{iggy_port(iggy_server)}")
    (tmp_path / "both.py").write_text(program.replace('"kafka", "letters"', '"sales", "orders"'))
    with started(start, tmp_path) as bridge:
        run(f"echo two coffees | kcat -b {bridge.bootstrap} -P -t orders.eu", tmp_path)
        assert run("python3 both.py", tmp_path, [sdk_python("0.12")]) == "0 two coffees\n"
        assert run(f"kcat -b {bridge.bootstrap} -C -t orders.eu -o beginning -e", tmp_path) == "two coffees\nfrom Iggy\n"

"""What the README says to try works as it is written there: its commands are taken from it and run, on another port."""

import os
import re
import subprocess
import sys

import pytest
from server import Server

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
README = os.path.join(os.path.dirname(TESTS), "README.md")


def blocks():
    """(language, text) of every code block under "Three things to try"."""
    with open(README, encoding="utf-8") as file:
        section = file.read().split("\n## Three things to try\n")[1].split("\n## ")[0]
    return re.findall(r"^```(\w*)\n(.*?)^```$", section, re.M | re.S)


@pytest.fixture
def shell(tmp_path):
    """Runs a README command against a server of its own; python3 and kafka-NAME.sh are the installed peers'."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("topics", "console-producer", "console-consumer", "get-offsets"):
        script = programs / f"kafka-{name}.sh"
        script.write_text(f'#!/bin/sh\nexec "{TESTS}/peers/kafka-tool.sh" kafka-{name} "$@"\n')
        script.chmod(0o755)
    environment = dict(os.environ, PATH=f"{programs}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
    with Server(str(tmp_path)) as server:

        def run(command, more="", typed=""):
            text = command.replace("127.0.0.1:9093", server.bootstrap) + more
            done = subprocess.run(
                text, shell=True, cwd=tmp_path, env=environment, input=typed, capture_output=True, text=True, timeout=40, check=False
            )
            assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
            return done.stdout

        run.folder = tmp_path
        run.server = server
        yield run


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
    create, produce, consume, offsets = commands(blocks()[3])
    assert "Created topic payments" in shell(create)
    shell(produce, typed="one\n")
    written = dict(re.findall(r"payments:(\d):(\d)", shell(offsets)))
    assert sorted(written.values()) == ["0", "0", "1"]
    partition = next(number for number, end in written.items() if end == "1")
    reader = consume.replace("--partition 0", f"--partition {partition}")
    assert shell(reader, " --max-messages 1 --timeout-ms 20000") == "one\n"

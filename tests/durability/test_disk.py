"""What a data folder may do to a server: be taken, read-only, full, damaged. Each a clear error, and the rest goes on."""

import os
import re
import subprocess

import pytest
from kwire import Conn, batch
from load import create, fetch, stored
from server import Server

STORAGE_ERROR = 56


def produce(conn, topic, partition, data, acks=-1):
    """(error, base offset)"""
    body = {"acks": acks, "timeout": 10000, "topics": [{"name": topic, "parts": [{"p": partition, "rec": data}]}]}
    answer = conn.rq("Produce", 8, body)
    assert isinstance(answer, dict), answer
    part = answer["topics"][0]["parts"][0]
    return part["err"], part["base"]


def numbered(number, size):
    return batch([(b"k", b"%08d" % number + os.urandom(size))])


class Mount:
    """A tmpfs of its own, so that a folder can be full or read-only without touching the machine's disk. Asks sudo when not root."""

    def __init__(self, path, options):
        self.path = str(path)
        os.makedirs(self.path, exist_ok=True)
        self._as_root("mount", "-t", "tmpfs", "-o", f"{options},uid={os.getuid()}", "tmpfs", self.path)

    def _as_root(self, *command):
        subprocess.run([*([] if os.geteuid() == 0 else ["sudo", "-n"]), *command], check=True)

    def remount(self, options):
        self._as_root("mount", "-o", "remount," + options, self.path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._as_root("umount", "-l", self.path)


def ends_badly(server):
    """A start that must fail: its log, after a status that is not 0 nor a signal's."""
    server.spawn()
    assert server.process.wait(15) > 0
    return server.log()


def test_a_second_process_on_the_same_folder_ends_with_a_clear_line(tmp_path):
    with Server(str(tmp_path)) as first:
        (tmp_path / "other").mkdir()
        second = Server(str(tmp_path / "other"), data=first.data)
        log = ends_badly(second)
        assert first.data in log and re.search("another process|in use|locked", log), log
        create(first.bootstrap, "still-works", 1)


def test_a_data_folder_that_is_a_file_ends_with_a_clear_line(tmp_path):
    (tmp_path / "data").write_text("not a folder")
    log = ends_badly(Server(str(tmp_path)))
    assert str(tmp_path / "data") in log and re.search("(?i)not a (folder|directory)", log), log


def test_a_read_only_folder_ends_with_a_clear_line(tmp_path):
    with Mount(tmp_path / "ro", "size=4m") as mount:
        mount.remount("ro")
        log = ends_badly(Server(str(tmp_path), data=mount.path))
        assert mount.path in log and re.search("(?i)read-only|can't be written", log), log


def test_a_full_disk_refuses_records_and_keeps_what_it_acknowledged(tmp_path):
    with Mount(tmp_path / "small", "size=24m") as mount, Server(str(tmp_path), data=mount.path, SEGMENT_BYTES="4MiB") as server:
        create(server.bootstrap, "keep", 2)
        create(server.bootstrap, "drop", 1)
        conn = Conn(server.bootstrap, timeout=20)
        for number in range(8):
            assert produce(conn, "drop", 0, numbered(number, 1_000_000)) == (0, number)
        acknowledged, errors = [], set()
        for number in range(64):  # more than fits
            data = numbered(number, 500_000)
            error, base = produce(conn, "keep", 0, data)
            if error:
                errors.add(error)
            else:
                acknowledged.append((base, data))
        assert errors == {STORAGE_ERROR}, f"errors {errors} after {len(acknowledged)} records"
        assert acknowledged

        # Everything else works, on this connection and on others.
        assert fetch(conn, "keep", 0, 0)["err"] == 0
        assert conn.rq("Metadata", 4, {"topics": None})["topics"]
        check(conn, acknowledged)

        # Room again: records are taken again, at the next offset.
        answer = conn.rq("DeleteTopics", 3, {"names": ["drop"]})
        assert answer["topics"][0]["err"] == 0, answer
        data = numbered(99, 100_000)
        error, base = produce(conn, "keep", 0, data)
        assert (error, base) == (0, acknowledged[-1][0] + 1)
        acknowledged.append((base, data))

        server.kill()
        server.start()
        check(Conn(server.bootstrap, timeout=20), acknowledged)


def check(conn, acknowledged):
    got = {base: data[16:] for base, _, data in stored(conn, "keep", 0)}
    assert got == {base: data[16:] for base, data in acknowledged}


def segments(server, topic_bytes):
    """The segment files of the data folder that are larger than so much, oldest first."""
    found = []
    for folder, _, names in os.walk(server.data):
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(".log") and os.path.getsize(path) >= topic_bytes:
                found.append(path)
    return sorted(found, key=os.path.basename)


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x40]))


def filled(server, count=25):
    """Topics damaged and sound, with so many records of 100 kB in several segments of the first. What was sent."""
    create(server.bootstrap, "damaged", 1)
    create(server.bootstrap, "sound", 1)
    conn = Conn(server.bootstrap, timeout=20)
    sent = [numbered(number, 100_000) for number in range(count)]
    for number, data in enumerate(sent):
        assert produce(conn, "damaged", 0, data) == (0, number)
    assert produce(conn, "sound", 0, sent[0]) == (0, 0)
    return sent


def readable(conn, sent):
    """Reads the damaged topic from the beginning, comparing. (first offset that is not served, error there)"""
    offset = 0
    while offset < len(sent):
        part = fetch(conn, "damaged", 0, offset)
        if part["err"]:
            return offset, part["err"]
        if not part["rec"]:
            return offset, 0
        offset = read_equal(part["rec"], offset, sent)
    return offset, 0


@pytest.mark.parametrize("end", ["stop", "kill"])
@pytest.mark.parametrize("which", ["sealed", "last"])
def test_a_damaged_segment_is_never_served_as_good(tmp_path, which, end):
    """One flipped bit in the middle of a segment: what is whole before it is read, at it there is an error, other partitions work (D2-36)."""
    with Server(str(tmp_path), SEGMENT_BYTES="1MiB") as server:
        sent = filled(server)
        getattr(server, end)()
        files = segments(server, 300_000)
        assert len(files) >= 3, files
        path = files[0] if which == "sealed" else files[-1]
        flip(path, os.path.getsize(path) // 2)

        server.start()
        conn = Conn(server.bootstrap, timeout=20)
        assert fetch(conn, "sound", 0, 0)["rec"][16:] == sent[0][16:]
        damaged, error = readable(conn, sent)
        assert error and 0 < damaged < 25, (damaged, error)
        print(f"{which} {end}: records before {damaged} read, then error {error}")
        if which == "sealed":  # what is behind the damaged batch is whole
            later = fetch(conn, "damaged", 0, 24)
            assert later["err"] == 0 and read_equal(later["rec"], 24, sent) == 25
        error, base = produce(conn, "damaged", 0, sent[0])
        assert error or base == 25, "a record took the place of one that was acknowledged"
        assert error == 0 or which == "last", error
        assert produce(conn, "sound", 0, sent[1]) == (0, 1)
        assert re.search("(?i)damaged|corrupt|checksum", server.log()), server.log()[-1000:]


@pytest.mark.parametrize("tail", ["cut", "half a batch", "zeros"])
def test_a_torn_tail_is_cut_and_logged(tmp_path, tail):
    """As a power cut leaves it: only what is incomplete goes, and the log goes on where the whole batches end."""
    with Server(str(tmp_path), SEGMENT_BYTES="1MiB") as server:
        sent = filled(server)
        server.kill()
        path = segments(server, 300_000)[-1]
        size = os.path.getsize(path)
        with open(path, "r+b") as file:
            if tail == "cut":
                file.truncate(size - 1000)
            else:
                file.seek(size)
                file.write(sent[0][:5000] if tail == "half a batch" else bytes(100_000))
        whole = 24 if tail == "cut" else 25

        server.start()
        conn = Conn(server.bootstrap, timeout=20)
        offset, error = readable(conn, sent)
        assert (offset, error) == (whole, 0)
        assert produce(conn, "damaged", 0, sent[3]) == (0, whole)
        part = fetch(conn, "damaged", 0, whole)
        assert part["rec"][16:] == sent[3][16:]
        assert re.search("(?i)cut|torn", server.log()), server.log()[-1000:]


def read_equal(data, offset, sent):
    """Compares the batches in data with those sent; the offset behind them."""
    at = 0
    while at + 61 <= len(data):
        length = 12 + int.from_bytes(data[at + 8 : at + 12], "big")
        base = int.from_bytes(data[at : at + 8], "big")
        assert data[at : at + length][16:] == sent[base][16:], f"record {base} differs"
        at, offset = at + length, base + 1
    return offset

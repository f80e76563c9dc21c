#!/usr/bin/env python3
"""kcat.py BOOTSTRAP [SCENARIO-PART]   kcat (Debian's: librdkafka 2.0.2, the strictest about ApiVersions) in its own words"""

import json
import subprocess
import sys

from report import Report, eventually, expect, topic_name

BOOTSTRAP = sys.argv[1]
LINES = "".join(f"k{i}:value {i} " + "v" * (i % 50) + "\n" for i in range(500))


def kcat(*options, input=None):
    done = subprocess.run(["kcat", "-b", BOOTSTRAP, "-m", "10", *options], input=input, capture_output=True, text=True, timeout=30)
    if done.returncode:
        raise AssertionError(f"kcat {' '.join(options)}: {done.stderr.strip()[-300:]}")
    return done.stdout


def read(topic, *options):
    return kcat("-C", "-q", "-e", "-t", topic, *options)


class Kcat:
    def __init__(self):
        self.report = Report("kcat", sys.argv[2] if len(sys.argv) > 2 else "")

    def topic(self, scenario):
        return topic_name("kcat", scenario)

    def metadata(self):
        text, listed = kcat("-L"), json.loads(kcat("-L", "-J"))
        expect(len(listed["brokers"]), 1, "brokers")
        expect(listed["controllerid"] == listed["brokers"][0]["id"] or " (controller)" in text, True, "controller")
        self.report.saw("metadata", brokers=len(listed["brokers"]))

    def codec(self, codec):
        topic = self.topic(codec)
        kcat("-P", "-t", topic, "-K:", "-z", codec, "-X", "acks=all", input=LINES)
        expect(read(topic, "-o", "beginning", "-K:"), LINES, "records")
        self.report.saw(f"records-{codec}", last=read(topic, "-o", "-1", "-f", "%p:%o"))

    def headers(self):
        topic = self.topic("headers")
        kcat("-P", "-t", topic, "-H", "a=1", "-H", "b=2", "-H", "a=3", "-H", "empty=", input="hello\n")
        got = read(topic, "-o", "beginning", "-f", "%h|%s|%o|%p|%k")
        expect(got, "a=1,b=2,a=3,empty=|hello|0|0|", "record")
        self.report.saw("headers", record=got)

    def nulls(self):
        topic = self.topic("nulls")
        kcat("-P", "-t", topic, "-K:", "-Z", input="k:\n")
        kcat("-P", "-t", topic, "-K:", input=":v\n")
        records = [json.loads(text) for text in read(topic, "-o", "beginning", "-J").splitlines()]
        got = [(record["key"], record["payload"]) for record in records]
        expect(got[0], ("k", None), "tombstone")
        self.report.saw("nulls", records=json.dumps(got).replace(" ", ""))

    def offsets(self):
        topic = self.topic("offsets")
        numbers = "".join(f"{i}\n" for i in range(1, 101))
        kcat("-P", "-t", topic, input=numbers)
        facts = {
            "last5": read(topic, "-o", "-5").split()[0],
            "offset10": read(topic, "-o", "10", "-c", "1").strip(),
            "latest": kcat("-Q", "-t", f"{topic}:0:-1").strip().replace(topic, "T").replace(" ", "_"),
            "earliest": kcat("-Q", "-t", f"{topic}:0:-2").strip().replace(topic, "T").replace(" ", "_"),
            "all_by_time": len(read(topic, "-o", "s@1").split()),
            "future": len(read(topic, "-o", "s@99999999999999").split()),
        }
        expect((facts["last5"], facts["offset10"], facts["all_by_time"], facts["future"]), ("96", "11", 100, 0), "offsets")
        self.report.saw("offsets", **facts)

    def idempotent(self):
        topic = self.topic("idempotent")
        numbers = "".join(f"{i}\n" for i in range(1000))
        kcat("-P", "-t", topic, "-X", "enable.idempotence=true", input=numbers)
        expect(read(topic, "-o", "beginning"), numbers, "records")
        self.report.saw("idempotent", last=read(topic, "-o", "-1", "-f", "%p:%o"))

    def old_protocol(self):
        """A client that asks for message format v1 must not be served wrong; it falls back on what ApiVersions offers."""
        topic = self.topic("old")
        kcat("-P", "-t", topic, "-X", "broker.version.fallback=0.9.0", "-X", "api.version.request=true", input="1\n2\n3\n")
        expect(read(topic, "-o", "beginning"), "1\n2\n3\n", "records")
        self.report.saw("old-protocol", records=3)

    def tail(self):
        """A consumer that waits at the end gets a record written later."""
        topic = self.topic("tail")
        kcat("-P", "-t", topic, input="first\n")
        command = ["kcat", "-b", BOOTSTRAP, "-C", "-q", "-u", "-t", topic, "-o", "beginning", "-c", "2", "-X", "fetch.wait.max.ms=5000"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as reader:
            expect(reader.stdout.readline(), "first\n", "first record")
            kcat("-P", "-t", topic, input="second\n")
            expect(reader.stdout.readline(), "second\n", "second record")
            expect(reader.wait(10), 0, "status")
        self.report.saw("tail", records=2)

    def group(self):
        """A consumer of a group that comes back goes on at its commit."""
        topic = self.topic("group")
        kcat("-P", "-t", topic, input="".join(f"{i}\n" for i in range(20)))
        lives = []
        for ends in (["-c", "7"], ["-c", "6"], ["-e"]):
            options = ["-q", "-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=6000", "-X", "enable.partition.eof=true", *ends]
            command = ["kcat", "-b", BOOTSTRAP, "-G", topic + "-g", *options, topic]
            done = subprocess.run(command, capture_output=True, text=True, timeout=30)
            expect(done.returncode, 0, done.stderr.strip()[-200:])
            lives.append(done.stdout.split())
        expect([int(number) for life in lives for number in life], list(range(20)), "numbers of three lives")
        self.report.saw("group", **{f"life{i}": f"{life[0]}-{life[-1]}" for i, life in enumerate(lives)})

    def unknown_partition(self):
        topic = self.topic("unknown")
        kcat("-P", "-t", topic, input="x\n")
        eventually("the topic", lambda: topic in kcat("-L"))
        command = ["kcat", "-b", BOOTSTRAP, "-C", "-q", "-e", "-t", topic, "-p", "7", "-o", "beginning"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        expect(done.returncode != 0, True, f"a failure, not {done.stdout!r}")
        self.report.saw("unknown-partition", status=done.returncode)

    def run(self):
        scenario = self.report.scenario
        scenario("metadata", self.metadata)
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            scenario(f"records-{codec}", lambda codec=codec: self.codec(codec))
        for name in ("headers", "nulls", "offsets", "idempotent", "old-protocol", "tail", "group", "unknown-partition"):
            scenario(name, getattr(self, name.replace("-", "_")))
        return 1 if self.report.failed else 0


sys.exit(Kcat().run())

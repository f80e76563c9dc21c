#!/usr/bin/env python3
"""java_tools.py BOOTSTRAP [SCENARIO-PART]   Apache Kafka's command line tools (kafka-topics.sh and its like)

The scenarios build on each other: the topic is made first and deleted last.
"""

import json
import os
import re
import subprocess
import sys
import tempfile

from records import FIRST_MS
from report import Report, eventually, expect, topic_name

BOOTSTRAP = sys.argv[1]
TOOL = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "peers", "kafka-tool.sh")


def tool(name, *options, input=None, fails=False):
    """Standard output and error of a tool, which must succeed, or must fail, or may (None)."""
    command = [TOOL, f"kafka-{name}", *options]
    log = dict(os.environ, KLL="ERROR")  # the tools log the class of the error
    done = subprocess.run(command, input=input, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=40, env=log)
    if fails is not None and bool(done.returncode) != fails:
        raise AssertionError(f"kafka-{name} {' '.join(options)}: status {done.returncode}: {done.stdout.strip()[-300:]}")
    return done.stdout


def with_server(name, *options, **more):
    return tool(name, "--bootstrap-server", BOOTSTRAP, *options, **more)


class JavaTools:
    def __init__(self):
        self.report = Report("java-tools", sys.argv[2] if len(sys.argv) > 2 else "")
        self.topic = topic_name("java-tools", "all")
        self.group = topic_name("java-tools", "group")

    def topics(self, *options, **more):
        return with_server("topics", *options, **more)

    def offsets(self, *options):
        """partition -> offset, as kafka-get-offsets.sh prints topic:partition:offset."""
        text = with_server("get-offsets", "--topic", self.topic, *options)
        return {int(p): int(o or -1) for p, o in re.findall(rf"^{re.escape(self.topic)}:(\d+):(-?\d*)$", text, re.M)}

    def consume(self, *options):
        text = with_server("console-consumer", "--topic", self.topic, *options)
        return text.splitlines()

    def topics_create(self):
        expect(f"Created topic {self.topic}" in self.topics("--create", "--topic", self.topic, "--partitions", "3"), True, "created")
        again = self.topics("--create", "--topic", self.topic, fails=True)
        expect("already exists" in again, True, again[-200:])
        self.topics("--create", "--topic", self.topic, "--if-not-exists")
        factor = self.topics("--create", "--topic", self.topic + "-f", "--replication-factor", "3", fails=True)
        self.report.saw("topics-create", again="already-exists", factor3=re.findall(r"errors\.(\w+)", factor)[-1])

    def topics_list(self):
        listed = self.topics("--list").split()
        expect(self.topic in listed, True, "the topic is listed")
        self.report.saw("topics-list", listed=True)

    def topics_describe(self):
        def described():
            text = self.topics("--describe", "--topic", self.topic)
            return re.search(r"PartitionCount: 3\s+ReplicationFactor: 1", text) and text

        text = eventually("3 partitions", described)
        rows = re.findall(r"Partition: (\d)\s+Leader: (\d+)\s+Replicas: (\d+)\s+Isr: (\d+)", text)
        expect([row[0] for row in rows], ["0", "1", "2"], "rows")
        expect(all(row[1] == row[2] == row[3] for row in rows), True, "leader, replicas and isr")
        unknown = self.topics("--describe", "--topic", self.topic + "-none", fails=True)
        self.report.saw("topics-describe", partitions=3, unknown="does not exist" in unknown)

    def console_producer(self):
        lines = "".join(f"h1:a{i},h2:b\tk{i}\tvalue {i}\n" for i in range(200))
        properties = ["parse.headers=true", "parse.key=true", "null.marker=NULL"]
        options = [word for one in properties for word in ("--reader-property", one)]
        for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
            with_server("console-producer", "--topic", self.topic, "--compression-codec", codec, *options, input=lines)
        offsets = self.offsets()
        expect(sum(offsets.values()), 1000, f"records in {offsets}")
        self.report.saw("console-producer", records=sum(offsets.values()), offsets=str(offsets).replace(" ", ""))

    def console_consumer(self):
        offsets = self.offsets()
        properties = ["print.partition=true", "print.offset=true", "print.headers=true", "print.key=true"]
        options = [word for one in properties for word in ("--formatter-property", one)]
        seen = []
        for partition, count in offsets.items():
            where = ["--partition", str(partition), "--offset", "earliest", "--max-messages", str(count), "--timeout-ms", "15000"]
            seen += [line for line in self.consume(*where, *options) if line.startswith("Partition:")]
        expect(len(seen), 1000, "lines")
        for line in seen:
            number = re.search(r"\tk(\d+)\t", line).group(1)
            expect(f"h1:a{number},h2:b" in line and line.endswith(f"value {number}"), True, line)
        self.report.saw("console-consumer", records=len(seen))

    def console_consumer_offset(self):
        where = ["--partition", "0", "--offset", "17", "--max-messages", "2", "--timeout-ms", "15000"]
        lines = self.consume(*where, "--formatter-property", "print.offset=true")
        offsets = re.findall(r"Offset:(\d+)", " ".join(lines))
        expect(offsets, ["17", "18"], "offsets")
        self.report.saw("console-consumer-offset", offsets=",".join(offsets))

    def get_offsets(self):
        facts = {
            "latest": self.offsets("--time", "-1"),
            "earliest": self.offsets("--time", "-2"),
            "past": self.offsets("--time", str(FIRST_MS)),
            "future": self.offsets("--time", "99999999999999"),
        }
        expect([sum(facts["latest"].values()), sum(facts["earliest"].values())], [1000, 0], "offsets")
        expect(facts["past"], facts["earliest"], "offsets of a time before all records")
        largest = self.offsets("--time", "-3")
        expect(all(0 <= largest[p] < facts["latest"][p] for p in largest), True, f"offsets of the greatest time {largest}")
        one = self.offsets("--partitions", "1", "--time", "earliest")
        self.report.saw("get-offsets", one=one, **{key: str(value).replace(" ", "") for key, value in facts.items()})

    # ---- consumer groups ----

    def groups(self, *options, **more):
        return with_server("consumer-groups", *options, **more)

    def neutral(self, text):
        """What a tool prints without what differs from run to run, as the order of the lines: their words, joined."""
        text = text.replace(self.topic, "T").replace(self.group, "G").replace(BOOTSTRAP, "B")
        text = re.sub(r"console-consumer-[0-9a-f-]{36}", "ID", text)
        text = re.sub(r"\S+ +\(\d+\)", "COORDINATOR", text)
        lines = [",".join(line.split()) for line in text.splitlines() if line.strip() and not re.match(r"\[\d{4}-|\s+at |Picked up", line)]
        return ";".join(sorted(lines)) or "nothing"

    def described(self, *options):
        return self.neutral(self.groups("--describe", "--group", self.group, *options))

    def group_consume(self):
        options = ["--group", self.group, "--timeout-ms", "20000"]
        first = self.consume(*options, "--from-beginning", "--max-messages", "7")
        rest = self.consume(*options, "--max-messages", "993")
        numbers = [line for line in first + rest if line.startswith("value ")]
        expect((len(numbers), len(set(numbers))), (1000, 200), "lines, values")  # 200 values with each of five codecs
        self.report.saw("group-consume", records=len(numbers))

    def group_empty(self):
        listed = self.groups("--list").split()
        expect(self.group in listed, True, "the group is listed")
        facts = {
            "state": self.described("--state"),
            "offsets": self.described(),
            "members": self.described("--members"),
            "verbose": self.described("--members", "--verbose"),
            "unknown": self.neutral(self.groups("--describe", "--group", self.group + "-none", fails=None)),
        }
        self.report.saw("group-empty", listed=True, **facts)

    def group_active(self):
        command = [TOOL, "kafka-console-consumer", "--bootstrap-server", BOOTSTRAP, "--topic", self.topic, "--group", self.group]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True) as consumer:
            try:
                eventually("a stable group", lambda: "Stable" in self.described("--state"), 25)
                facts = {
                    "state": self.described("--state"),
                    "offsets": self.described("--offsets"),
                    "members": self.described("--members"),
                    "verbose": self.described("--members", "--verbose"),
                    "listed": self.neutral(self.groups("--list", "--state", "stable")).count("G,") == 1,
                    "delete": self.neutral(self.groups("--delete", "--group", self.group, fails=None)),
                }
            finally:
                consumer.terminate()
        self.report.saw("group-active", **facts)

    def reset(self, *how):
        return self.neutral(self.groups("--reset-offsets", "--group", self.group, "--topic", self.topic, *how, "--execute"))

    def group_reset(self):
        eventually("a group without members", lambda: "Empty" in self.described("--state"))
        facts = {
            "earliest": self.reset("--to-earliest"),
            "shift": self.reset("--shift-by", "5"),
            "past": self.reset("--to-datetime", "2020-01-01T00:00:00.000"),
            "future": self.reset("--to-datetime", "2100-01-01T00:00:00.000"),
        }
        self.report.saw("group-reset", **facts)

    def group_delete(self):
        one = self.neutral(self.groups("--delete-offsets", "--group", self.group, "--topic", f"{self.topic}:0"))
        left = self.described()
        done = self.neutral(self.groups("--delete", "--group", self.group))
        again = self.neutral(self.groups("--delete", "--group", self.group, fails=None))
        expect(self.group in self.groups("--list").split(), False, "the group is listed")
        self.report.saw("group-delete", offsets=one, left=left, deleted=done, again=again)

    # ---- settings ----

    def configs(self, *options, **more):
        return self.neutral(with_server("configs", "--entity-type", "topics", "--entity-name", self.topic, *options, **more))

    def configs_alter(self):
        def described(settings):
            return eventually(f"{settings} settings", lambda: (text := self.configs("--describe")).count("{DYNAMIC_TOPIC_CONFIG") == settings and text)

        facts = {"altered": self.configs("--alter", "--add-config", "retention.ms=80000000,retention.bytes=5000000000"), "both": described(2)}
        self.configs("--alter", "--delete-config", "retention.ms", "--add-config", "retention.bytes=6000000000")
        facts["one"] = described(1)
        facts["unknown"] = self.configs("--alter", "--add-config", "nonsense=1", fails=True)
        facts["node"] = self.neutral(with_server("configs", "--entity-type", "brokers", "--entity-default", "--alter", "--add-config", "log.dirs=/x", fails=True))
        self.configs("--alter", "--delete-config", "retention.bytes")
        facts["none"] = described(0)
        self.report.saw("configs-alter", **facts)

    def group_configs(self):
        """What is set for a group; a server that keeps none says so."""

        def configs(*options, **more):
            return with_server("configs", "--entity-type", "groups", "--entity-name", self.group, *options, **more)

        def described(settings):
            return eventually(f"{settings} settings", lambda: (text := configs("--describe")).count("{DYNAMIC_GROUP_CONFIG") == settings and self.neutral(text))

        said = [self.neutral(configs("--alter", "--add-config", "consumer.session.timeout.ms=50000,consumer.heartbeat.interval.ms=6000", fails=None))]
        if "Completed" in said[0]:
            said.append(described(2))
            configs("--alter", "--delete-config", "consumer.session.timeout.ms", "--add-config", "consumer.heartbeat.interval.ms=7000")
            said.append(described(1))
            configs("--alter", "--delete-config", "consumer.heartbeat.interval.ms")
        every = [line for line in configs("--describe", "--all").splitlines() if re.search(r" consumer\.(session|heartbeat)", line)]
        self.report.saw(
            "group-configs",
            kept="+".join(said),
            none="DYNAMIC" not in described(0),
            every=self.neutral("\n".join(every)),
            range=self.neutral(configs("--alter", "--add-config", "consumer.session.timeout.ms=1000", fails=True)),
            unknown=self.neutral(configs("--alter", "--add-config", "nonsense=1", fails=True)),
        )

    def topics_alter(self):
        self.topics("--alter", "--topic", self.topic, "--partitions", "5")
        eventually("5 partitions", lambda: "PartitionCount: 5" in self.topics("--describe", "--topic", self.topic))
        fewer = self.topics("--alter", "--topic", self.topic, "--partitions", "2", fails=True)
        self.report.saw("topics-alter", partitions=5, fewer=re.findall(r"errors\.(\w+)", fewer)[-1])

    def delete_records(self):
        """Partition 0 to an offset, 1 to its end, 2 beyond it."""
        ends = self.offsets()
        wanted = [{"topic": self.topic, "partition": p, "offset": offset} for p, offset in ((0, 7), (1, -1), (2, ends[2] + 1))]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"version": 1, "partitions": wanted}, file)
            file.flush()
            text = self.neutral(with_server("delete-records", "--offset-json-file", file.name, fails=None))
        text = text.replace(f"low_watermark:,{ends[1]};", "low_watermark:,END;")  # which differs from run to run
        text = re.sub(r"org[.a-z]*\.(\w+):[^;]*", r"\1", text)
        starts = self.offsets("--time", "-2")
        deleted = "DeleteRecords(21): UNSUPPORTED" not in with_server("broker-api-versions")
        expect([starts[p] for p in range(3)], [7, ends[1], 0] if deleted else [0, 0, 0], "starts")
        expect(self.offsets(), ends, "ends")
        self.report.saw("delete-records", said=text)

    def producer_perf(self):
        options = ["--num-records", "20000", "--record-size", "200", "--throughput", "-1"]
        text = tool("producer-perf-test", "--topic", self.topic, *options, "--producer-props", f"bootstrap.servers={BOOTSTRAP}", "acks=all")
        expect("20000 records sent" in text, True, text[-200:])
        offsets = self.offsets()
        expect(sum(offsets.values()), 21000, f"records in {offsets}")
        self.report.saw("producer-perf", records=sum(offsets.values()))

    def api_versions(self):
        text = with_server("broker-api-versions")
        expect("Produce(0)" in text and "ApiVersions(18)" in text, True, text[:200])
        self.report.saw("api-versions", produce="Produce(0)" in text)

    def cluster_id(self):
        text = tool("cluster", "cluster-id", "--bootstrap-server", BOOTSTRAP)
        expect("Cluster ID: " in text, True, text[:200])
        self.report.saw("cluster-id", found=True)

    def topics_delete(self):
        self.topics("--delete", "--topic", self.topic)
        eventually("the topic is gone", lambda: self.topic not in self.topics("--list").split())
        again = self.topics("--delete", "--topic", self.topic, fails=True)
        self.report.saw("topics-delete", again="does not exist" in again)

    def run(self):
        for name in (
            "topics-create topics-list topics-describe console-producer console-consumer console-consumer-offset get-offsets "
            "group-consume group-empty group-active group-reset group-delete group-configs configs-alter topics-alter producer-perf delete-records api-versions cluster-id topics-delete"
        ).split():
            self.report.scenario(name, getattr(self, name.replace("-", "_")))
        return 1 if self.report.failed else 0


sys.exit(JavaTools().run())

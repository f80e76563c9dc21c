"""A WordCount on Kafka Streams: it loses no word when it, another of its instances, or the gateway ends; what it had counted comes back from its
changelog."""

import pytest
from java import Java
from places import PLACES, place
from report import RUN
from words import PARTITIONS, Words

SETTINGS = {
    "processing.guarantee": "at_least_once",
    "commit.interval.ms": 200,
    "statestore.cache.max.bytes": 0,
    "session.timeout.ms": 6000,
    "heartbeat.interval.ms": 500,
    "repartition.purge.interval.ms": 1000,
}


@pytest.fixture(params=PLACES)
def where(request, tmp_path):
    with place(request.param, tmp_path, ACCEPT_COMPACT="true") as found:
        yield found


class Application:
    """Instances of one WordCount, each with a state folder of its own: what one knows of another's counts it has from the server."""

    def __init__(self, where, name, folder):
        self.words = Words(where.bootstrap, name)
        self.bootstrap, self.folder = where.bootstrap, folder

    def start(self, name, **more):
        settings = SETTINGS | {"bootstrap.servers": self.bootstrap, "application.id": self.words.application, "state.dir": self.folder / f"state-{name}"}
        settings |= {key.replace("_", "."): value for key, value in more.items()}
        texts = [f"{key}={value}" for key, value in settings.items()]
        return Java(self.folder, name, ["streams/classes", "streams/libs/*"], "WordCount", self.words.input, self.words.output, *texts)


def tasks(instance):
    lines = [line for line in instance.output().splitlines() if line.startswith("tasks")]
    return lines[-1].split()[1:] if lines else []


def test_a_killed_application_goes_on_at_its_counts(where, tmp_path):
    application = Application(where, f"killed-{RUN}", tmp_path)
    words = application.words
    words.send(200)
    with application.start("first") as first:
        first.until("exact counts", words.exact)
        first.until("commits", words.committed)
        first.kill()
    words.send(200)
    with application.start("second", group_instance_id="static") as second:
        second.until("exact counts, by way of the changelog", words.exact)
        with words.flowing():
            before = words.counts()["word0"]
            second.until("new counts", lambda: words.counts()["word0"] > before)
            second.kill()
    words.send(20)
    with application.start("third", group_instance_id="static") as third:
        third.until("all words", words.counted)


def test_instances_share_the_work_and_survive_the_gateway(where, tmp_path):
    application = Application(where, f"shared-{RUN}", tmp_path)
    words = application.words
    words.send(200)
    with application.start("one") as one:
        one.until("exact counts", words.exact)
        with application.start("two") as two:
            two.until("both at work", lambda: tasks(one) and tasks(two) and len(tasks(one) + tasks(two)) == 2 * PARTITIONS)
            words.send(200)
            two.until("exact counts of both", words.exact)
            with words.flowing():
                where.restart()
                before = sum(words.counts().values())
                one.until("new counts", lambda: sum(words.counts().values()) > before)
            one.until("all words", words.counted)
            assert two.process.poll() is None
            two.kill()
        words.send(200)
        one.until("all words, without the other", words.counted)
        assert len(tasks(one)) == 2 * PARTITIONS
        one.until("commits", words.committed)

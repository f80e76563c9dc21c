"""Kafka Connect copies the lines of a file to a topic and from there to another file. No line is lost when a worker or the gateway ends, and what was
committed is not copied again."""

import pytest
from places import PLACES, place
from report import RUN
from workers import DISTRIBUTED, STANDALONE, Pipe, Worker

INTERNAL = [f"{kind}.storage" for kind in ("config", "offset", "status")]


@pytest.fixture(params=PLACES)
def where(request, tmp_path):
    with place(request.param, tmp_path, ACCEPT_COMPACT="true", ACCEPT_ANY_REPLICATION="true") as found:
        yield found


@pytest.mark.parametrize("where", PLACES[:1], indirect=True)
def test_a_standalone_worker_goes_on_where_it_was_killed(where, tmp_path):
    pipe = Pipe(tmp_path, f"alone-{RUN}")

    def start(name):
        settings = {"offset.storage.file.filename": tmp_path / "offsets"}
        return Worker(tmp_path, name, STANDALONE, where.bootstrap, settings, pipe.connectors)

    pipe.write(1000)
    with start("first") as first:
        first.until("all lines", pipe.exact)
        first.until("commits", lambda: pipe.committed(first))
        first.kill()
    pipe.write(1000)
    with start("second") as second:
        second.until("the rest of the lines and no others", pipe.exact)
        with pipe.flowing():
            where.restart()
            late = f"line {pipe.count + 1}"
            second.until("what was written after the restart", lambda: late in pipe.lines())
            second.kill()
    pipe.write(1000)
    with start("third") as third:
        third.until("all lines", pipe.at_least)


def distributed(where, folder, name, group):
    """A worker of a group. Its three topics are made by the first: on the embedded log with a replication factor of 3, which is Connect's default."""
    settings = {"group.id": group, "session.timeout.ms": 6000, "heartbeat.interval.ms": 500, "scheduled.rebalance.max.delay.ms": 0}
    settings |= {f"{kind}.topic": f"{group}-{kind.split('.')[0]}" for kind in INTERNAL}
    if where.name != "embedded":
        settings |= {f"{kind}.replication.factor": 1 for kind in INTERNAL}
    return Worker(folder, name, DISTRIBUTED, where.bootstrap, settings)


def test_distributed_workers_share_connectors_and_take_them_over(where, tmp_path):
    group = f"workers-{RUN}"
    pipe = Pipe(tmp_path, group)
    pipe.write(1000)
    with distributed(where, tmp_path, "one", group) as one:
        one.until("the worker", lambda: one.api("/connectors") == [])
        for connector in pipe.connectors:
            one.create(connector)
        one.until("all lines", pipe.exact)
        one.until("commits", lambda: pipe.committed(one))
        one.kill()
    pipe.write(1000)
    with distributed(where, tmp_path, "two", group) as two:
        two.until("the rest of the lines and no others", pipe.exact)
        two.until("the connectors", lambda: sorted(two.api("/connectors") or ()) == sorted(pipe.names))
        with distributed(where, tmp_path, "three", group) as three:
            three.until("a task on each worker", lambda: len(three.running(*pipe.names) or ()) == 2)
            with pipe.flowing():
                where.restart()
            three.until("all lines", pipe.at_least)
            two.kill()
            pipe.write(1000)
            three.until("all lines, by the worker that is left", pipe.at_least)

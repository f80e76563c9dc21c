"""Many groups at once: what they do, and a server that is restarted in the middle.

env: GROUP_PLANS=franz-go runs only the groups with such a name.
"""

import concurrent.futures
import contextlib
import os
import threading

import acts
from members import Group
from writer import Writer

ACTING = threading.Semaphore(10)  # groups at once: what they need is processor time
SETTINGS = {  # members of consumer groups then have the times that the others ask for
    "GROUP_INITIAL_REBALANCE_DELAY_MS": 0,
    "GROUP_CONSUMER_SESSION_TIMEOUT_MS": 10000,
    "GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS": 500,
}
KINDS = {  # assignor, what happens
    "eager": ("default", acts.two_leave_two_come),
    "cooperative": ("cooperative", acts.two_leave_two_come),
    "static": ("default", acts.static),
    "static-unfenced": ("default", acts.static_unfenced),
    "consumer": ("consumer", acts.two_leave_two_come),
    "consumer-static": ("consumer", acts.static_consumer),
}


def selected(name):
    return os.environ.get("GROUP_PLANS", "") in name


class Course:
    """`plans`: name -> client, assignor, act. `outcomes`: name -> what went wrong, empty while nothing did."""

    def __init__(self, plans, bootstrap, logs, pool):
        self.pool = pool
        self.groups = {Group(name, client, assignor, bootstrap, logs): act for name, (client, assignor, act) in plans.items()}
        self.outcomes = dict.fromkeys(plans, "")
        self.writer = Writer(bootstrap)

    def each(self, step):
        """step(group) for all that are still right, at once."""
        runs = {group: self.pool.submit(step, group) for group in self.groups if not self.outcomes[group.name]}
        for group, run in runs.items():
            if error := run.exception():
                self.outcomes[group.name] = f"{type(error).__name__}: {error}"

    def act(self):
        def step(group):
            with ACTING:
                self.groups[group](group)

        self.each(step)

    def _outage(self):
        for group in self.groups:
            group.ledger.outages += 1

    def interrupted(self, server, end, keeps_groups=False):
        """server ends (stop, or kill) and starts again. keeps_groups: it is not the one that knows the groups."""
        marks = {group: group.marks() for group in self.groups}
        self._outage()
        getattr(server, end)()
        self._outage()  # of commits that began in between, too, it is not known whether the server has taken them
        server.start()
        if keeps_groups:
            self.each(lambda group: group.shared(f"after {end}"))
        else:
            self.each(lambda group: group.shared_anew(marks[group], f"after {end}"))

    def finish(self):
        """Everything that was written is read, and all leave."""
        acknowledged = self.writer.stop()

        def step(group):
            group.until("all records", lambda: not group.ledger.missing(acknowledged))
            for name in list(group.members):
                group.leave(name)

        self.each(step)


@contextlib.contextmanager
def course(plans, bootstrap, logs):
    with concurrent.futures.ThreadPoolExecutor(len(plans)) as pool:
        one = Course(plans, bootstrap, logs, pool)
        try:
            one.writer.start()
            yield one
        finally:
            one.writer.stopping.set()
            for group in one.groups:
                group.close()

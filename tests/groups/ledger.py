"""What the members of one group processed and committed, and what that must look like."""

import threading

# The coordinator did not take the commit. Any other end of a commit leaves open whether it counts.
REFUSED = {"ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "FENCED_INSTANCE_ID", "FENCED_MEMBER_EPOCH", "STALE_MEMBER_EPOCH"}


class Ledger:
    """A member reads a partition on from where it was, or it has just been given it: then it must begin exactly at the group's last commit. Where the
    outcome of a commit isn't known (its member was killed, the server went away) it may begin there too; and what a poll gives may have begun at what was
    the last commit when the poll before it started. carried: the client sends a commit that was interrupted once more when it has joined anew, maybe
    after the next owner began; so one may begin at the commit before. `restarting`: members that may begin at the first record whatever is committed."""

    def __init__(self, partitions, carried=False):
        self.lock = threading.Lock()
        self.carried, self.restarting = carried, set()
        self.commits = {partition: [0] for partition in range(partitions)}
        self.open = {partition: set() for partition in range(partitions)}  # offsets that may have been committed
        self.next = {}  # member, partition -> where it goes on
        self.polls = {}  # member -> how many commits there were of each partition when its last poll but one began, its last one, this one
        self.numbers = {partition: {} for partition in range(partitions)}  # partition -> offset -> number
        self.complaints = []
        self.outages = 0

    def polling(self, member):
        """Its next poll begins."""
        with self.lock:
            now = {place: len(commits) for place, commits in self.commits.items()}
            self.polls[member] = [*self.polls.get(member, [now, now])[-1:], now]

    def processed(self, member, records):
        with self.lock:
            for record in records:
                self._one(member, record)

    def _one(self, member, record):
        place, offset = record.partition, record.offset
        if self.next.get((member, place)) != offset:
            since = self.polls[member][0][place] - 1
            allowed = {*self.commits[place][since:], *self.open[place], *self.commits[place][-2 if self.carried else -1 :]}
            if offset not in allowed and not (offset == 0 and member in self.restarting):
                was = self.next.get((member, place))
                self.complaints.append(f"{member} began partition {place} at {offset}, committed was {sorted(allowed)}, it was at {was}")
            if offset in self.open[place]:
                self.commits[place].append(offset)
                self.open[place] = {one for one in self.open[place] if one > offset}
        self.next[member, place] = offset + 1
        number = self.numbers[place].setdefault(offset, int(record.value))
        if number != int(record.value):
            self.complaints.append(f"partition {place}, offset {offset}: {number}, and for {member} {int(record.value)}")

    def committing(self, member, records):
        """The ends that a commit of these records would set; it begins now."""
        ends = {record.partition: record.offset + 1 for record in records}
        with self.lock:
            for place, end in ends.items():
                self.open[place].add(end)
            return ends, self.outages

    def committed_all(self, attempt, done):
        """It succeeded for the partitions in `done`; others had been taken away, and nothing was sent for them."""
        ends, _ = attempt
        with self.lock:
            for place, end in ends.items():
                self.open[place].discard(end)
            for place, end in done.items():
                self.commits[place].append(end)

    def commit_failed(self, attempt, error):
        ends, outages = attempt
        with self.lock:
            if error not in REFUSED or outages != self.outages:
                return
            for place, end in ends.items():
                self.open[place].discard(end)

    def ends(self):
        with self.lock:
            return {place: commits[-1] for place, commits in self.commits.items()}

    def counts(self):
        with self.lock:
            return {place: len(numbers) for place, numbers in self.numbers.items()}

    def missing(self, acknowledged):
        """What was acknowledged as (partition, offset) -> number and not processed as that."""
        with self.lock:
            return [(place, offset, number) for (place, offset), number in acknowledged.items() if self.numbers[place].get(offset) != number]

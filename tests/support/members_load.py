"""Members of many groups, one connection each, that join and heartbeat (bench/members.c)."""

import os
import subprocess

from server import BINARY

PROGRAM = os.path.join(os.path.dirname(BINARY), "bench-members")
GROUPS, EACH, INTERVAL_MS = 1000, 10, 3000
TOPIC = "members"  # of EACH partitions
# What a server must be allowed for so many.
SETTINGS = {"MAX_CONNECTIONS": GROUPS * EACH + 100}


def group_names():
    return [f"members-{number}" for number in range(GROUPS)]


class Members:
    """They are there while it is entered. `joined`: what the program said of the joining."""

    def __init__(self, bootstrap, protocol="classic"):
        self.command = [PROGRAM, bootstrap, protocol, str(GROUPS), str(EACH), str(INTERVAL_MS), TOPIC]
        self.process, self.joined = None, {}

    def _line(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"members: ended with {self.process.wait()}")
        pairs = (word.partition("=") for word in line.split())
        return {key: float(value) for key, _, value in pairs if value}

    def window(self):
        """What happened since the last call, or since all had joined: heartbeats, p50_us, p99_us, .., errors, rebalances, lost, cpu."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self._line()

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.joined = self._line()
        return self

    def __exit__(self, error, *_):
        """They leave their groups."""
        if error:
            self.process.kill()
        self.process.stdin.close()
        status = self.process.wait()
        assert error or status == 0, f"members: ended with {status}"
        self.process.stdout.close()

"""SIGHUP, and what the log says to it."""

import signal
import time

GOOD = '"new connections get the certificate that was read again"'
BAD = '"can\'t use the new files for TLS, the old ones stay"'
OFF = '"nothing to read again: TLS is off"'


def hang_up(server, line):
    """SIGHUP, and the log says line."""
    before = server.log().count(line)
    server.process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 10
    while server.log().count(line) < before + 1:
        assert time.monotonic() < deadline and server.process.poll() is None, server.log()[-2000:]
        time.sleep(0.01)

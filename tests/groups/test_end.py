"""What members are told when their server ends: nothing but a closed connection, as by Kafka. kafkajs gives up for ever when a server sends it to
another coordinator (16) and then goes."""

import threading

from kwire import Conn
from server import Server

MEMBERS = 20


class Member(threading.Thread):
    """The only one of its group, with a heartbeat under way all the time. `codes`: what they were answered."""

    def __init__(self, bootstrap, group):
        super().__init__(daemon=True)
        self.conn, self.codes, self.answered = Conn(bootstrap, timeout=20), set(), threading.Event()
        protocols = [{"name": "range", "meta": b""}]
        join = {"group": group, "session": 30000, "rebalance": 30000, "member": "", "ptype": "consumer", "protos": protocols}
        joined = self.conn.rq("JoinGroup", 2, join)
        self.who = {"group": group, "gen": joined["gen"], "member": joined["member"]}
        synced = self.conn.rq("SyncGroup", 2, self.who | {"assigns": [{"member": joined["member"], "data": b""}]})
        assert joined["err"] == synced["err"] == 0

    def run(self):
        while isinstance(answer := self.conn.rq("Heartbeat", 2, self.who), dict):
            self.codes.add(answer["err"])
            self.answered.set()
        self.ending = answer
        self.conn.close()


def test_heartbeats_that_are_under_way_when_the_server_ends_are_good_and_no_others_are_answered():
    with Server(GROUP_INITIAL_REBALANCE_DELAY_MS=0) as server:
        members = [Member(server.bootstrap, f"ends-{number}") for number in range(MEMBERS)]
        for member in members:
            member.start()
        assert all(member.answered.wait(20) for member in members)
        server.stop()
        for member in members:
            member.join(20)
            assert not member.is_alive()
        assert {member.ending for member in members} == {"closed"}
        assert set().union(*(member.codes for member in members)) == {0}

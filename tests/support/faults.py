"""A proxy between an Iggy client and an Iggy server that breaks what it is told to break. It knows frames: a header of 256 bytes, with the
frame's size at 48.

What happens to which frame of which connection is drawn from the seed alone, so that a seed means the same faults again as far as the two sides
send the same frames.
"""

import asyncio
import collections
import dataclasses
import random
import socket
import struct
import threading

HEADER = 256
REQUEST, REPLY, EVICTION = 5, 8, 13
REGISTER = 1
STALE_CLIENT = 13
OUTCOME_UNKNOWN, NOT_TAKEN = 57, 58


@dataclasses.dataclass
class Plan:
    """Chances are for each frame, times in seconds."""

    cut_bytes: int = 0  # a connection is cut after about so many bytes in one direction, in the middle of a frame as well
    delay: float = 0.0  # a frame comes up to delay_max later, and with it what is behind it
    delay_max: float = 0.2
    refuse: float = 0.0  # answered 58 instead of being forwarded
    unknown: float = 0.0  # answered 57 instead of being forwarded
    unknown_done: float = 0.0  # forwarded, and answered 57 for all that
    evict: float = 0.0  # an Eviction instead of being forwarded
    silent: float = 0.0  # nothing is forwarded any more, and nothing closed
    view_every: float = 0.0  # about so often all requests of all connections are refused with 58 for view_long
    view_long: float = 0.3


class _Cut(Exception):
    pass


class Faults:
    """Listens on `address` at once. Without a plan, or after calm(), it only forwards."""

    def __init__(self, upstream, seed=0, plan=None):
        host, port = upstream.rsplit(":", 1)
        self.upstream = host, int(port)
        self.seed, self.plan = seed, plan or Plan()
        self.counts = collections.Counter()
        self.connections, self.writers = 0, set()
        self.in_view_change = False
        self.loop = asyncio.new_event_loop()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self._call(self._listen())

    def _call(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(10)

    def calm(self):
        """No faults from now on; connections that were made silent are cut."""
        self.plan = Plan()
        self._call(self._cut_all())

    def begin(self, plan):
        self.plan = plan

    def cut_all(self):
        self._call(self._cut_all())

    def close(self):
        self._call(self._end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()

    async def _listen(self):
        self.server = await asyncio.start_server(self._serve, sock=self.listener, limit=1 << 20)
        self.views = asyncio.create_task(self._change_views())

    async def _cut_all(self):
        for writer in list(self.writers):
            writer.transport.abort()

    async def _end(self):
        self.server.close()
        self.views.cancel()
        await self._cut_all()
        for _ in range(100):
            if not self.writers:
                break
            await asyncio.sleep(0.01)

    async def _change_views(self):
        rng = random.Random(f"{self.seed}/views")
        while True:
            every = self.plan.view_every
            await asyncio.sleep(rng.uniform(0.5, 1.5) * every if every else 0.05)
            if every and self.plan.view_every:
                self.counts["view change"] += 1
                self.in_view_change = True
                await asyncio.sleep(self.plan.view_long)
                self.in_view_change = False

    async def _serve(self, reader, writer):
        number = self.connections
        self.connections += 1
        self.writers.add(writer)
        other = None
        try:
            up_reader, other = await asyncio.open_connection(*self.upstream, limit=1 << 20)
            self.writers.add(other)
            for one in (writer, other):
                one.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = _Link(self, number, writer, other)
            up = asyncio.create_task(link.pump(reader, other, link.on_request, "up"))
            down = asyncio.create_task(link.pump(up_reader, writer, link.on_reply, "down"))
            await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
            for task in (up, down):
                task.cancel()
            await asyncio.gather(up, down, return_exceptions=True)
        except OSError:
            pass  # the server isn't there
        finally:
            for one in (writer, other):
                if one:
                    one.close()
                    self.writers.discard(one)


class _Link:
    """One connection with its two directions."""

    def __init__(self, faults, number, client, server):
        self.faults, self.number, self.client, self.server = faults, number, client, server
        self.done_unknown = set()  # numbers of requests whose answers become a 57
        self.silent = False

    def _count(self, what):
        self.faults.counts[what] += 1

    async def pump(self, reader, writer, rule, direction):
        rng = random.Random(f"{self.faults.seed}/{self.number}/{direction}")
        life = rng.expovariate(1.0)  # in units of cut_bytes
        passed = 0
        try:
            while True:
                head = await reader.readexactly(HEADER)
                (size,) = struct.unpack_from("<I", head, 48)
                frame = bytearray(head + await reader.readexactly(max(size, HEADER) - HEADER))
                draws = [rng.random() for _ in range(8)]  # as many for every frame, so that one plan's draws don't shift another's
                frame = await self._pass(frame, rule, draws)
                if frame is None:
                    continue
                if self.faults.plan.cut_bytes:
                    left = int(life * self.faults.plan.cut_bytes) - passed
                    passed += len(frame)
                    if left < len(frame):
                        await self._cut(writer, frame[: max(left, 0)], draws[7])
                writer.write(frame)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError, _Cut):
            return

    async def _cut(self, writer, part, draw):
        """The part of a frame, then the end: a FIN or a reset."""
        self._count("cut")
        writer.write(part)
        await writer.drain()
        if draw < 0.5:
            for one in (self.client, self.server):
                one.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.transport.abort()
        raise _Cut

    async def _pass(self, frame, rule, draws):
        """The frame to forward; None: it is dealt with."""
        plan = self.faults.plan
        if draws[0] < plan.delay:
            self._count("delay")
            await asyncio.sleep(draws[1] * plan.delay_max)
        if draws[2] < plan.silent and not self.silent:
            self._count("silent")
            self.silent = True
        return None if self.silent else rule(frame, plan, draws)

    def on_request(self, frame, plan, draws):
        if frame[60] != REQUEST or frame[176] == REGISTER:
            return frame
        (number,) = struct.unpack_from("<Q", frame, 168)
        draw = draws[3]
        for chance, what, code in ((plan.refuse, "58", NOT_TAKEN), (plan.unknown, "57", OUTCOME_UNKNOWN)):
            if draw < chance or (self.faults.in_view_change and code == NOT_TAKEN):
                self._count(what)
                self.client.write(_refusal(frame, number, code))
                return None
            draw -= chance
        if draw < plan.unknown_done:
            self._count("57, done")
            self.done_unknown.add(number)
            return frame
        if draw - plan.unknown_done < plan.evict:
            self._count("eviction")
            self.client.write(_eviction(frame))
            return None
        return frame

    def on_reply(self, frame, plan, draws):
        (number,) = struct.unpack_from("<Q", frame, 200)
        if frame[60] != REPLY or number not in self.done_unknown:
            return frame
        self.done_unknown.discard(number)
        struct.pack_into("<I", frame, 48, HEADER)
        struct.pack_into("<I", frame, 216, OUTCOME_UNKNOWN)
        return frame[:HEADER]


def _refusal(request, number, code):
    """A reply with a status and no body."""
    head = bytearray(HEADER)
    struct.pack_into("<I", head, 48, HEADER)
    head[60] = REPLY
    head[128:144] = request[144:160]
    head[160:176] = request[128:144]
    struct.pack_into("<Q", head, 200, number)
    head[208] = request[176]
    struct.pack_into("<I", head, 216, code)
    head[224:232] = request[200:208]
    return bytes(head)


def _eviction(request):
    head = bytearray(HEADER)
    struct.pack_into("<I", head, 48, HEADER)
    head[60] = EVICTION
    head[128:144] = request[128:144]
    head[255] = STALE_CLIENT
    return bytes(head)

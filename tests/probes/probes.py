"""Raw probes of a Kafka-protocol server, and what of an answer is compared.

Never compared: correlation and session ids, node ids, hosts, ports, cluster id, topic ids, producer ids, throttle, times near now, order of
topics, partitions and resources (except in probes named "order"), how records are cut into batches (except in probes named "batch").
A probe that gets nothing within 6 s has the value "no answer".
"""

import gzip, json, os, re, struct, sys, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from kwire import *

LIMIT = 6.0
M = 2**31 - 1
PROBES = []


def P(sec, name, f, order=False):
    PROBES.append((sec, name, f, order or "order" in name.split()))


B0 = 1_700_000_000_000


def bt(**k):
    k.setdefault("ts", B0)
    return batch(**k)


Z1, Z2 = "11" * 16, "22" * 16
KEEP_IDS = {ZERO: "0", Z1: "1..", Z2: "2.."}


class X:
    """what a probe sees: a connection that comes back, random names that are known to the normaliser"""

    def __init__(s, boot):
        s.boot = boot
        s.names = {}
        s.cs = []
        s._c = None
        s.last = None
        s.end = time.monotonic() + LIMIT - 0.3
        s.cnt = {}

    def conn(s):
        c = Conn(s.boot, timeout=max(0.2, s.end - time.monotonic()))
        s.cs.append(c)
        return c

    @property
    def c(s):
        if s._c is None:
            s._c = s.conn()
        s._c.limit = max(0.2, s.end - time.monotonic())
        return s._c

    def rq(s, api, v, body=None, **k):
        r = s.c.rq(api, v, body, **k)
        s.last = r if isinstance(r, str) else None
        if isinstance(r, str):
            s._c.close()
            s._c = None
        elif api == "JoinGroup":
            s.member(r.get("member"))
        return r

    def member(s, m):
        if m and len(m) > 12 and m not in s.names:
            s.names[m] = "<m%d>" % sum(v[:2] == "<m" for v in s.names.values())

    def name(s, kind="t"):
        n = "%s%s" % (kind, os.urandom(5).hex())
        s.names[n] = "<%s%d>" % (kind, s.cnt.get(kind, 0))
        s.cnt[kind] = s.cnt.get(kind, 0) + 1
        return n

    def topic(s, n=1, cfg=None, k="t"):
        t = s.name(k)
        e = mktopic(s.c, t, n, cfg)
        if e:
            raise Setup("CreateTopics %s -> %s" % (cfg or "", e))
        return t

    def g(s):
        return s.name("g")

    def alive(s):
        return s.c.alive() if s._c or s.last is None else "closed" if s.last == CLOSED else "dead"

    def pid(s):
        for _ in range(20):
            r = s.rq("InitProducerId", 4, {})
            if isinstance(r, dict) and r["err"] not in (14, 15, 16):
                break
            time.sleep(0.2)
        if isinstance(r, str) or r["err"]:
            raise Setup("InitProducerId -> %s" % (r if isinstance(r, str) else r["err"]))
        return r["pid"]

    def prod(s, parts, v=8, **k):
        return produce_(s, parts, v, **k)

    def close(s):
        for c in s.cs:
            c.close()


class Setup(Exception):
    pass


def produce_(x, parts, v=8, acks=-1, txid=None, timeout=2000):
    ts = {}
    for a, b, r in parts:
        ts.setdefault(a, []).append({"p": b, "rec": r})
    return x.rq(
        "Produce",
        v,
        {
            "txid": txid,
            "acks": acks,
            "timeout": timeout,
            "topics": [{("id" if v >= 13 else "name"): a, "parts": p} for a, p in ts.items()],
        },
    )


# ------------------------------------------------------------------ normalising
SORTED = {"topics", "parts", "groups", "res", "coords", "configs", "brokers", "members", "forget", "aborted"}


def norm(v, x, key=None, order=False, batchlevel=False):
    rec = lambda y, k=None: norm(y, x, k, order, batchlevel)
    if isinstance(v, dict):
        o = {}
        for k, y in v.items():
            if k in ("throttle", "~fepoch"):
                continue
            o[k] = rec(y, k)
        return o
    if isinstance(v, (list, tuple)):
        if key == "keys" and v and isinstance(v[0], dict):
            return {str(k["key"]): "%d-%d" % (k["min"], k["max"]) for k in v}
        if key in ("replicas", "isr", "offline", "elr", "lastelr"):
            return ["<n>" if isinstance(n, int) and n >= 0 else n for n in v]
        l = [rec(y) for y in v]
        if key in SORTED and not order:
            l.sort(
                key=lambda y: (
                    [str(y.get(k)) for k in ("name", "id", "group", "key", "member", "type", "p")]
                    + [json.dumps({k: z for k, z in y.items() if k != "msg"}, sort_keys=True)]
                    if isinstance(y, dict)
                    else [str(y)]
                )
            )
        return l
    if isinstance(v, bool) or v is None:
        return v
    if isinstance(v, int):
        if key in ("node", "leader", "controller", "id") and v >= 0:
            return "<n>"
        if key == "port" and v > 0:
            return "<port>"
        if key == "pid" and v >= 0:
            return "<pid>"
        if key == "sid" and v != 0:
            return "<sid>"
        if key in ("lat", "ts", "mts", "bts", "now") and abs(v - time.time() * 1000) < 3600_000 / 2:
            return "<now>"
        return v
    if isinstance(v, bytes):
        if key == "rec":
            return records(v, batchlevel)
        return (
            sub(v.decode("latin1"), x)
            if all(32 <= c < 127 for c in v)
            else v.hex() if len(v) <= 64 else "%d bytes" % len(v)
        )
    if isinstance(v, str):
        if key == "host" and v:
            return "<host>" if not v.startswith("/") else v
        if key == "cluster" and v:
            return "<cluster>"
        if re.fullmatch("[0-9a-f]{32}", v) and key == "id":
            return KEEP_IDS.get(v, "<uuid>")
        return sub(v, x)
    return str(v)


def sub(s, x):
    for k in sorted(x.names, key=len, reverse=True):
        if k in s:
            s = s.replace(k, x.names[k])
    s = re.sub(r"\b[A-Za-z0-9_-]{22}\b(?=-\d|:)", "<id22>", s)
    if " " in s:
        s = re.sub(r"-?\d{12,}", "<N>", s)
    return s if len(s) < 400 else s[:60] + "… %d characters" % len(s)


def records(b, level):
    if b == b"":
        return ""
    try:
        bs = batches(b, strict=False)
    except ValueError as e:
        return "bad records: %s" % e
    if level:
        return [
            {
                k: "<now>" if k in ("bts", "mts") and abs(a[k] - time.time() * 1000) < 1800_000 else a[k]
                for k in ("base", "lod", "cnt", "attr", "bts", "mts", "epoch", "seq", "ple")
            }
            for a in bs
        ] + ([] if sum(a["size"] for a in bs) == len(b) else ["cut"])
    return [
        [
            r.off,
            r.ts,
            None if r.key is None else r.key.hex(),
            None if r.val is None else (r.val.hex() if len(r.val) < 40 else "%d bytes" % len(r.val)),
        ]
        + ([[(k.hex(), None if h is None else h.hex()) for k, h in r.hdrs][:6]] if r.hdrs else [])
        for a in bs
        for r in a["recs"]
    ] or "cut"


def strip_text(v):
    if isinstance(v, dict):
        return {k: strip_text(y) for k, y in v.items() if k != "msg"}
    if isinstance(v, list):
        return [strip_text(y) for y in v]
    return v


def leaves(a, b, path=""):
    if type(a) is not type(b):
        yield path, a, b
    elif isinstance(a, dict):
        for k in list(a) + [k for k in b if k not in a]:
            if k not in a:
                yield path + "." + k, "-", b[k]
            elif k not in b:
                yield path + "." + k, a[k], "-"
            else:
                yield from leaves(a[k], b[k], path + "." + k if path else k)
    elif isinstance(a, list):
        if len(a) != len(b):
            yield path, a, b
        else:
            for i, (p, q) in enumerate(zip(a, b)):
                yield from leaves(p, q, "%s[%d]" % (path, i))
    elif a != b:
        yield path, a, b


# ================================================================== frames
S = "frames"


def rawprobe(h, t=1.2, alive=True):
    def f(x):
        c = x.conn()
        c.raw(h() if callable(h) else h)
        r = c.frame(t)
        return [r if isinstance(r, str) else r[4:].hex()[:80], c.alive(2) if alive and r != CLOSED else ""]

    return f


for n, h in (
    ("length -1", "ffffffff"),
    ("length 0", "00000000"),
    ("length 1", "0000000100"),
    ("length 7", "00000007000300000000 00"),
    ("no client id", "00000008 0003 0000 00000001"),
    ("length 2^31-1", "7fffffff"),
    ("http", b"GET / HTTP/1.1\r\n\r\n"),
    ("tls hello", "1603010200010001fc03"),
    ("client id length -2", "0000000a 0003 0000 00000001 fffe"),
    ("client id beyond the frame", "0000000a 0003 0000 00000001 7fff"),
):
    P(S, n, rawprobe(h, alive=False))
P(S, "length 104857601", rawprobe("06400001", alive=False))


def md0(cid):
    def f(x):
        c = x.conn()
        c.raw("%08x 0003 0001 00000001 %s 00000000" % (8 + len(cid) // 2 + 4, cid))
        r = c.frame(3)
        return r if isinstance(r, str) else decode("Metadata", 1, r[4:])["topics"]

    return f


P(S, "client id null", md0("ffff"))
P(S, "client id empty", md0("0000"))
P(S, "client id 300 bytes", lambda x: (lambda c: c.alive())(Conn(x.boot, cid="x" * 300)))
P(S, "ApiVersions v99", rawprobe("00000011 0012 0063 00000007 0001 61 00 02 61 02 31 00"))
P(S, "ApiVersions v99 header without tags", rawprobe("0000000b 0012 0063 00000007 0001 61"))
P(S, "ApiVersions v-1", rawprobe("0000000b 0012 ffff 00000007 0001 61"))
P(S, "ApiVersions v6", rawprobe("00000011 0012 0006 00000007 0001 61 00 02 61 02 31 00"))
for v in (0, 1, 2, 3, 4):
    P(S, "ApiVersions v%d" % v, lambda x, v=v: x.rq("ApiVersions", v, {"name": "a", "ver": "1"} if v > 2 else {}))
for nm, vr in (
    ("", "1"),
    ("a b", "1"),
    ("-a", "1"),
    ("a-", "1"),
    ("é", "1"),
    ("a.b-c1", "1"),
    ("x" * 300, "1"),
    ("a", ""),
    ("a", "1 2"),
    ("a", "-1"),
    ("franz-go", "v1.2.3"),
):
    P(
        S,
        "ApiVersions v3 name %.8r version %r" % (nm, vr),
        lambda x, nm=nm, vr=vr: (lambda r: [r if isinstance(r, str) else [r["err"], len(r["keys"]) > 0], x.alive()])(
            x.rq("ApiVersions", 3, {"name": nm, "ver": vr})
        ),
    )
P(
    S,
    "ApiVersions keys ascending order",
    lambda x: (lambda k: k == sorted(k))([k["key"] for k in x.rq("ApiVersions", 3, {"name": "a", "ver": "1"})["keys"]]),
)
P(
    S,
    "ApiVersions v3 header is v0",
    lambda x: (x.rq("ApiVersions", 3, {"name": "a", "ver": "1"}), x.c.last[4:7].hex())[1][:4],
)
P(S, "ApiVersions v0 trailing byte", lambda x: [bool(isinstance(x.rq("ApiVersions", 0, b"\0"), dict)), x.alive()])
P(
    S,
    "ApiVersions v3 trailing bytes",
    lambda x: [
        bool(isinstance(x.rq("ApiVersions", 3, encode("ApiVersions", 3, {"name": "a", "ver": "1"}) + b"\0\0"), dict)),
        x.alive(),
    ],
)
P(S, "ApiVersions v3 cut body", lambda x: x.rq("ApiVersions", 3, b"\x02"))


def raw_md(v, h):
    return lambda x: (lambda r: [r if isinstance(r, str) else "answered", x.alive()])(
        x.rq("Metadata", v, bytes.fromhex(h))
    )


for n, v, h in (
    ("v1 trailing", 1, "000000000000"),
    ("v1 cut", 1, "0000"),
    ("v1 count 2^31-1", 1, "7fffffff"),
    ("v1 count -2", 1, "fffffffe"),
    ("v0 null", 0, "ffffffff"),
    ("v1 null name", 1, "00000001ffff"),
    ("v9 null name", 9, "020000000000"),
    ("v9 null", 9, "0000000000"),
    ("v9 unknown tag", 9, "01000000014d027a7a"),
    ("v9 tag length beyond", 9, "01000000014d7f7a7a"),
    ("v1 name length -2", 1, "00000001fffe"),
):
    P(S, "Metadata " + n, raw_md(v, h))
for k in (999, -1, 4, 5, 6, 7, 52, 73, 82):
    P(S, "key %d" % k, rawprobe(lambda k=k: struct.pack(">ihhih", 12, k, 0, 1, 1) + b"a\0", alive=False))
for a in (0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 19, 20, 21, 22, 23, 32, 33, 37, 42, 44, 47, 60, 75):

    def f(x, a=a):
        r = x.rq("ApiVersions", 0, {})
        if not isinstance(r, dict):
            return r
        k = [y for y in r["keys"] if y["key"] == a]
        if not k:
            return "not offered"
        o = []
        for v in (k[0]["min"] - 1, k[0]["max"] + 1):
            c = x.conn()
            c.raw(
                (lambda b: struct.pack(">i", len(b)) + b)(
                    struct.pack(">hhih", a, v, 1, 1) + b"a" + (b"\0" if v >= APIS[a].flex else b"") + b"\0" * 40
                )
            )
            q = c.frame(1.5)
            o.append(q if isinstance(q, str) else "answered")
        return o

    P(S, "key %d below and above its versions" % a, f)


def pipe(x):
    c = x.conn()
    t = x.topic()
    c.send("Fetch", 4, fetch_body(4, [(t, 0, 0)], wait=1000))
    c.send("Metadata", 1, {"topics": []})
    a = time.monotonic()
    r = c.recv()
    d = time.monotonic() - a
    q = c.recv()
    return [isinstance(r, dict), 0.8 < d < 2, isinstance(q, dict)]


P(S, "pipelined Fetch and Metadata answered in turn", pipe)
P(
    S,
    "frame in two pieces",
    lambda x: (
        lambda c: (
            c.raw("0000"),
            time.sleep(0.2),
            c.raw("000b 0012"),
            time.sleep(0.1),
            c.raw("0000 00000007 0001 61"),
            (lambda r: r if isinstance(r, str) else r[:6].hex())(c.frame(3)),
        )[-1]
    )(x.conn()),
)

# ================================================================== produce
S = "produce"


def PR(name, mk, v=8, n=2, cfg=None, after=False, **k):
    """mk(topic) gives the partitions; value: answer, connection, log ends"""

    def f(x):
        t = x.topic(n, cfg)
        r = x.prod(mk(t, x), v=v, **k)
        o = [r, x.alive()]
        if after:
            o.append([list_offset(x.c, t, p, -1)["off"] for p in range(n)])
        return o

    P(S, name, f)


two = [(b"a", b"1"), (b"b", b"2")]
one = two[:1]
for v in (3, 5, 7, 8, 9, 10, 12):
    PR("good v%d" % v, lambda t, x: [(t, 0, bt(n=2)), (t, 1, bt())], v=v, after=True)
P(S, "good v13 by id", lambda x: (lambda i: x.prod([(i, 0, bt()), (i, 7, bt())], v=13))(topic_id(x.c, x.topic())))
P(S, "v13 unknown id", lambda x: x.prod([(Z1, 0, bt())], v=13))
P(S, "v13 zero id", lambda x: x.prod([(ZERO, 0, bt())], v=13))
for v in (3, 7, 8, 9):
    PR("bad crc v%d" % v, lambda t, x: [(t, 0, bt(badcrc=True)), (t, 1, bt())], v=v, after=True)
hc = lambda n, rest=b"": (lambda i: svar(len(i)) + i)(
    b"\0" + svar(0) + svar(0) + svar(1) + b"a" + svar(1) + b"v" + svar(n) + rest
)
raw1 = lambda i: svar(len(i)) + i
R1 = record(0, 0, b"a", b"1")
for n, mk in (
    ("two batches", lambda: bt() + bt()),
    ("empty records", lambda: b""),
    ("10 zero bytes", lambda: b"\0" * 10),
    ("cut batch", lambda: bt()[:-3]),
    ("count 0", lambda: bt(recs=[])),
    ("count 2 lod 0", lambda: bt(recs=two, lod=0)),
    ("count 2 lod 5", lambda: bt(recs=two, lod=5)),
    ("count 3 for 2", lambda: bt(recs=two, cnt=3)),
    ("count 1 for 2", lambda: bt(recs=two, cnt=1)),
    ("trailing byte", lambda: bt(recs=one, body=R1 + b"\0")),
    ("header count max", lambda: bt(recs=one, body=hc(0x7FFFFFFF))),
    ("header count -1", lambda: bt(recs=one, body=hc(-1))),
    ("header key null", lambda: bt(recs=one, body=hc(1, svar(-1) + svar(0)))),
    ("header not utf8", lambda: bt(recs=[(b"a", b"v", [(b"\xc3\x28", b"\xff"), (b"", b"")])])),
    (
        "value beyond",
        lambda: bt(recs=one, body=raw1(b"\0" + svar(0) + svar(0) + svar(1) + b"a" + svar(1000) + b"v" + svar(0))),
    ),
    ("record attributes 7", lambda: bt(recs=one, body=record(0, 0, b"a", b"1", (), 7))),
    ("base offset 5", lambda: bt(base=5)),
    ("control bit", lambda: bt(attr=0x20)),
    ("pid without sequence", lambda: bt(pid=5, epoch=0, seq=-1)),
    ("transactional bit", lambda: bt(attr=0x10)),
    ("transactional bit and pid", lambda: bt(attr=0x10, pid=777, epoch=0, seq=0)),
    ("attribute bit 6", lambda: bt(attr=0x40)),
    ("attribute bit 7", lambda: bt(attr=0x80)),
    ("codec 5", lambda: bt(attr=5)),
    ("codec 7", lambda: bt(attr=7)),
    ("magic 3", lambda: bt(magic=3)),
    ("magic -1", lambda: bt(magic=-1)),
    ("magic 0 set", lambda: message(0, b"k", b"v")),
    ("magic 1 set", lambda: message(1, b"k", b"v") + message(1, b"k", b"w")),
    ("leader epoch 77", lambda: bt(ple=77)),
    ("pid -2", lambda: bt(pid=-2, epoch=-1, seq=0)),
    ("garbage gzip", lambda: bt(attr=1, body=b"\x1f\x8b\x08garbagegarbage")),
    ("garbage snappy", lambda: bt(attr=2, body=b"\x03\x08abc")),
    ("garbage lz4", lambda: bt(attr=3, body=b"garbagegarbage")),
    ("garbage zstd", lambda: bt(attr=4, body=b"garbagegarbage")),
    ("snappy bomb", lambda: bt(attr=2, body=bytes.fromhex("ffffffff0f00"))),
    ("gzip cut", lambda: bt(attr=1, body=gzip.compress(R1)[:-4])),
    ("gzip of nothing", lambda: bt(attr=1, body=gzip.compress(b""))),
    (
        "gzip two members",
        lambda: bt(
            recs=two, attr=1, body=gzip.compress(record(0, 0, b"a", b"1")) + gzip.compress(record(1, 0, b"b", b"2"))
        ),
    ),
    ("gzip trailing zeros", lambda: bt(recs=one, attr=1, body=gzip.compress(R1) + b"\0" * 8)),
    ("snappy", lambda: bt(n=9, codec="snappy")),
    ("xerial", lambda: bt(n=9, codec="xerial")),
    ("xerial zero block", lambda: bt(recs=one, attr=2, body=xerial(R1) + b"\0\0\0\0")),
    ("lz4", lambda: bt(n=9, codec="lz4")),
    ("lz4 no end mark", lambda: bt(recs=one, attr=3, body=lz4(R1)[:-4])),
    (
        "lz4 two frames",
        lambda: bt(recs=two, attr=3, body=lz4(record(0, 0, b"a", b"1")) + lz4(record(1, 0, b"b", b"2"))),
    ),
    ("zstd", lambda: bt(n=9, codec="zstd")),
    (
        "zstd skippable frame",
        lambda: bt(recs=one, attr=4, body=bytes.fromhex("502a4d180400000061626364") + zstd_raw(R1)),
    ),
    ("gzip count 3 for 2", lambda: bt(recs=two, cnt=3, codec="gzip")),
    ("timestamp 0", lambda: bt(ts=0)),
    ("timestamp -1", lambda: bt(ts=-1)),
    ("timestamp -5", lambda: bt(ts=-5)),
    ("timestamp year 9999", lambda: bt(ts=253402300799000, n=2)),
    ("timestamp 2^63-1", lambda: bt(ts=2**63 - 1)),
    ("timestamp now+50min", lambda: bt(ts=NOW + 3000000)),
    ("maxTimestamp -1", lambda: bt(n=2, maxts=-1)),
    ("append-time bit", lambda: bt(attr=8)),
    ("record delta 5", lambda: bt(recs=one, body=record(5, 0, b"a", b"1"))),
):
    PR(n, lambda t, x, mk=mk: [(t, 0, mk()), (t, 1, bt())], after=True)
PR("null records", lambda t, x: [(t, 0, None), (t, 1, bt())])
PR("zstd v6", lambda t, x: [(t, 0, bt(codec="zstd")), (t, 1, bt())], v=6)
PR("unknown topic", lambda t, x: [(x.name("n"), 0, bt()), (t, 0, bt())], v=7)
PR("unknown partitions", lambda t, x: [(t, 99, bt()), (t, -1, bt()), (t, 0, bt())])
PR("bad names", lambda t, x: [("a b", 0, bt()), ("", 0, bt()), (t, 0, bt())])
for a in (2, -2):
    PR("acks %d" % a, lambda t, x: [(t, 0, bt())], acks=a, after=True)
PR("acks 2 and unknown topic", lambda t, x: [(t, 0, bt()), (x.name("n"), 0, bt())], acks=2)
for tm in (0, -1):
    PR("timeout %d" % tm, lambda t, x: [(t, 0, bt())], timeout=tm)
PR("empty topic list", lambda t, x: [])
PR("transactional id empty", lambda t, x: [(t, 0, bt())], txid="")
PR("txid, plain batch", lambda t, x: [(t, 0, bt())], txid="tx-h")
P(
    S,
    "topic without partitions",
    lambda x: x.rq("Produce", 7, {"acks": 1, "timeout": 100, "topics": [{"name": x.topic(), "parts": []}]}),
)


def dup(x):
    t = x.topic()
    r = x.rq(
        "Produce",
        8,
        {
            "acks": -1,
            "timeout": 1000,
            "topics": [{"name": t, "parts": [{"p": 0, "rec": bt()}, {"p": 0, "rec": bt(n=2)}]}],
        },
    )
    return [r, list_offset(x.c, t, 0, -1)["off"]]


P(S, "same partition twice", dup)


def acks0(mk, v=7):
    def f(x):
        t = x.topic(2)
        c = x.conn()
        ps = mk(t, x)
        c.send(
            "Produce",
            v,
            {
                "acks": 0,
                "timeout": 1000,
                "topics": [
                    {"name": n, "parts": [{"p": p, "rec": r} for q, p, r in ps if q == n]}
                    for n in dict.fromkeys(q[0] for q in ps)
                ],
            },
        )
        e = c.eof(0.7)
        time.sleep(0.1)
        return ["closed" if e == "" else e, [list_offset(x.c, t, p, -1)["off"] for p in (0, 1)]]

    return f


for n, mk in (
    ("good", lambda t, x: [(t, 0, bt())]),
    ("unknown topic", lambda t, x: [(t, 0, bt()), (x.name("n"), 0, bt())]),
    ("bad crc", lambda t, x: [(t, 0, bt()), (t, 1, bt(badcrc=True))]),
    ("two batches", lambda t, x: [(t, 0, bt()), (t, 1, bt() + bt())]),
    ("empty list", lambda t, x: []),
    ("transactional", lambda t, x: [(t, 0, bt(attr=0x10, pid=7, epoch=0, seq=0))]),
):
    P(S, "acks 0 " + n, acks0(mk))
for v in (0, 1, 2):
    for a in (0, 1):
        P(
            S,
            "v%d acks %d" % (v, a),
            (
                lambda v, a: lambda x: (
                    lambda c: (
                        c.send(
                            "Produce",
                            v,
                            struct.pack(">hiih", a, 1000, 1, 1)
                            + b"t"
                            + struct.pack(">iii", 1, 0, 31)
                            + message(0, b"k", b"v"),
                        ),
                        "closed" if (e := c.eof(1.5)) == "" else e,
                    )[1]
                )(x.conn())
            )(v, a),
        )


def sized(n):
    k = n - 80
    while 1:
        b = bt(recs=[(None, b"x" * k)])
        if len(b) == n:
            return b
        k += n - len(b)


PR("batch of 1048588 bytes", lambda t, x: [(t, 0, sized(1048588)), (t, 1, bt())])
PR("batch of 1048589 bytes", lambda t, x: [(t, 0, sized(1048589)), (t, 1, bt())])
PR("3 MB in a small gzip", lambda t, x: [(t, 0, bt(recs=[(None, b"x" * 3000000)], codec="gzip"))])
PR(
    "null key, compacted",
    lambda t, x: [(t, 0, bt(recs=[(None, b"v"), (b"k", b"v")]))],
    cfg={"cleanup.policy": "compact"},
)
PR(
    "empty key, compacted",
    lambda t, x: [(t, 0, bt(recs=[(b"", b"v"), (b"k", None)]))],
    cfg={"cleanup.policy": "compact"},
)
PR(
    "append time",
    lambda t, x: [(t, 0, bt(n=3, ts=1000, deltas=[0, 5, 3]))],
    cfg={"message.timestamp.type": "LogAppendTime"},
)


def rt(recs, **k):
    def f(x):
        t = x.topic()
        r = x.prod([(t, 0, bt(recs=recs, **k))])
        return [perr(r)["err"] if isinstance(r, dict) else r, {"rec": perr(fetch(x.c, [(t, 0, 0)], v=4))["rec"]}]

    return f


ks = (None, b"", b"\0")
P(S, "round trip keys and values", rt([(a, b) for a in ks for b in ks]))
P(
    S,
    "round trip headers",
    rt([(b"k", b"v", [(b"a", None), (b"a", b""), (b"a", b"x"), (b"\xc3\x28", b"\xff"), (b"", b"")])]),
)
P(S, "round trip negative deltas", rt(two + one, ts=B0, deltas=[0, -600, -100]))
P(S, "round trip time 0 and later", rt(two, ts=0, deltas=[0, B0]))
P(S, "round trip time -1 and later", rt(two, ts=-1, maxts=-1, deltas=[0, B0]))
P(S, "round trip 300 byte header", rt([(b"k", b"v" * 300, [(b"n" * 300, b"z" * 70000)])]))
P(S, "round trip 1000 headers", rt([(b"k", b"v", [(b"h", b"%d" % i) for i in range(1000)])]))
P(S, "batch level of a fresh batch", rt(two, deltas=[0, 7]))
P(
    S,
    "batch level of append time",
    lambda x: (
        lambda t: (x.prod([(t, 0, bt(n=3, ts=1000, deltas=[0, 5, 3]))]), {"rec": perr(fetch(x.c, [(t, 0, 0)]))["rec"]})[
            1
        ]
    )(x.topic(1, {"message.timestamp.type": "LogAppendTime"})),
)

# ================================================================== idempotence
S = "idempotence"
for v in range(6):
    P(S, "InitProducerId v%d" % v, lambda x, v=v: (x.pid(), x.rq("InitProducerId", v))[1])
for n, b in (
    ("empty txid", {"txid": ""}),
    ("pid 0 epoch 0", {"pid": 0, "epoch": 0}),
    ("pid 12345 epoch 3", {"pid": 12345, "epoch": 3}),
    ("pid -1 epoch 3", {"pid": -1, "epoch": 3}),
    ("pid -5", {"pid": -5, "epoch": -1}),
    ("timeout 0", {"timeout": 0}),
    ("timeout -1", {"timeout": -1}),
):
    P(S, "InitProducerId " + n, lambda x, b=b: (x.pid(), x.rq("InitProducerId", 4, b))[1])
P(S, "InitProducerId ids differ", lambda x: x.pid() != x.pid())


def seqs(steps, cfg=None, v=8, unknown=False):
    """steps: (epoch, sequence, records) of batches one after the other; epoch None: a plain one"""

    def f(x):
        t, answers = x.topic(1, cfg), []
        pid = x.pid() + (700000000 if unknown else 0)
        for epoch, sequence, count in steps:
            r = x.prod([(t, 0, bt(n=count) if epoch is None else bt(n=count, pid=pid, epoch=epoch, seq=sequence))], v=v)
            e = perr(r) if isinstance(r, dict) else None
            answers.append(r if e is None else {k: e.get(k) for k in ("err", "base", "lat", "lso")})
        return answers

    return f


for n, st in (
    ("first sequences", [(0, 0, 1), (0, 1, 2), (0, 3, 1)]),
    ("retry of the last", [(0, 0, 2), (0, 0, 2)]),
    ("retry of the fifth last", [(0, i, 1) for i in range(7)] + [(0, 2, 1)]),
    ("retry of the sixth last", [(0, i, 1) for i in range(7)] + [(0, 1, 1)]),
    ("gap then right", [(0, 0, 1), (0, 5, 1), (0, 1, 1)]),
    ("prefix of a batch", [(0, 0, 3), (0, 0, 2)]),
    ("suffix of a batch", [(0, 0, 3), (0, 1, 2)]),
    ("longer than the batch", [(0, 0, 2), (0, 0, 3)]),
    ("overlap", [(0, 0, 2), (0, 1, 3)]),
    ("epoch up", [(0, 0, 1), (1, 0, 1), (1, 1, 1)]),
    ("epoch up by 4", [(0, 0, 1), (4, 0, 1)]),
    ("epoch up with sequence 5", [(0, 0, 1), (1, 5, 1)]),
    ("old epoch", [(1, 0, 1), (0, 1, 1)]),
    ("retry of an old epoch", [(0, 0, 1), (1, 0, 1), (0, 0, 1)]),
    ("first sequence 7", [(0, 7, 1), (0, 8, 1), (0, 7, 1), (0, 10, 1), (0, 0, 1)]),
    ("first epoch 3", [(3, 100, 1), (3, 101, 1)]),
    (
        "wrap inside a batch",
        [(0, 2147483640, 10), (0, 2, 1), (0, 2, 1), (0, 2147483640, 10), (0, 4, 1), (0, -2147483648, 1), (0, 3, 1)],
    ),
    ("wrap exactly", [(0, M, 1), (0, 0, 1), (0, M, 1), (0, 1, 1)]),
    ("plain batches between", [(0, 0, 1), (None, 0, 2), (0, 1, 1), (0, 0, 1)]),
    ("epoch -1", [(-1, 0, 1)]),
    ("sequence -1", [(0, -1, 1)]),
    ("epoch 32767 then 0", [(32767, 0, 1), (0, 0, 1)]),
):
    P(S, n, seqs(st))
P(S, "unknown producer", seqs([(0, 9, 1), (0, 10, 1), (0, 9, 1)], unknown=True))
P(S, "v3 old epoch", seqs([(1, 0, 1), (0, 1, 1)], v=3))
P(S, "append time retry", seqs([(0, 0, 1), (0, 0, 1)], {"message.timestamp.type": "LogAppendTime"}))


def otherconn(x):
    t, pid = x.topic(), x.pid()
    first = x.prod([(t, 0, bt(pid=pid, epoch=0, seq=0))])
    c = x.conn()
    return [first] + [produce(c, [(t, 0, bt(pid=pid, epoch=0, seq=sequence))], v=8) for sequence in (0, 1)]


P(S, "other connection", otherconn)


def perpart(x):
    t, pid = x.topic(2), x.pid()
    return [
        x.prod([(t, p, bt(pid=pid, epoch=0, seq=sequence)) for p, sequence in parts])
        for parts in (((0, 0), (1, 0)), ((1, 1), (0, 5)))
    ]


P(S, "state is per partition", perpart)


def afterdel(x):
    t, pid = x.topic(), x.pid()
    x.prod([(t, 0, bt(n=3, pid=pid, epoch=0, seq=0))])
    d = x.rq("DeleteRecords", 1, {"topics": [{"name": t, "parts": [{"p": 0, "off": -1}]}]})
    return [d] + [x.prod([(t, 0, bt(n=n, pid=pid, epoch=0, seq=sequence))]) for n, sequence in ((3, 0), (1, 9), (1, 3))]


P(S, "after DeleteRecords", afterdel)


def piped(x):
    t, pid, c = x.topic(), x.pid(), x.conn()
    for sequence in range(4):
        parts = [{"p": 0, "rec": bt(pid=pid, epoch=0, seq=sequence)}]
        c.send("Produce", 8, {"acks": -1, "timeout": 1000, "topics": [{"name": t, "parts": parts}]})
    return [c.recv() for _ in range(4)]


def producer_fields(x):
    t, pid = x.topic(), x.pid()
    x.prod([(t, 0, bt(pid=pid, epoch=2, seq=7))])
    return {"rec": perr(fetch(x.c, [(t, 0, 0)]))["rec"]}


P(S, "four pipelined", piped)
P(S, "batch level keeps producer fields", producer_fields)


# ================================================================== fetch
S = "fetch"


def FE(name, f):
    P(S, name, f)


def F(x, parts, v=11, wait=200, **k):
    a = time.monotonic()
    r = x.rq("Fetch", v, fetch_body(v, parts, wait=wait, **k))
    d = time.monotonic() - a
    return (
        [
            r,
            (
                "at once"
                if d < 0.6
                else "after max_wait" if wait / 1000 - 0.05 <= d < wait / 1000 + 1 else "after %.1f s" % d
            ),
        ]
        if wait >= 1000
        else r
    )


def log310(x, extra=1):
    """log 3..9: batches of 3, 4, 3 and DeleteRecords to 3"""
    t = x.topic(1 + extra)
    for n in (3, 4, 3):
        x.prod([(t, 0, bt(n=n))])
    r = x.rq("DeleteRecords", 1, {"topics": [{"name": t, "parts": [{"p": 0, "off": 3}]}]})
    if not isinstance(r, dict):
        raise Setup("DeleteRecords -> %s" % r)
    if perr_dr(r):
        raise Setup("DeleteRecords -> %d" % perr_dr(r))
    return t


def perr_dr(r):
    return r["topics"][0]["parts"][0]["err"]


for v in (4, 5, 7, 11, 12):
    for o in (0, 2, 3, 5, 10, 11, -1):
        FE(
            "v%d log 3..9 from %d" % (v, o),
            lambda x, v=v, o=o: (
                lambda r: (
                    (
                        [
                            {
                                k: (y if k != "rec" else [z for z in norm(y, x, "rec") if z[0] >= o] if y else y)
                                for k, y in perr(r).items()
                            },
                            r.get("err"),
                        ]
                    )
                    if isinstance(r, dict)
                    else r
                )
            )(F(x, [(log310(x), 0, o)], v=v)),
        )
FE("batch starts before the offset", lambda x: F(x, [(log310(x), 0, 5)]))
for v in (4, 11, 12):
    FE("v%d unknown topic" % v, lambda x, v=v: F(x, [(x.name("n"), 0, 0)], v=v))
    FE("v%d raw tail of an empty answer" % v, lambda x, v=v: (F(x, [(x.topic(), 0, 0)], v=v), x.c.last[-6:].hex())[1])
FE("unknown partition", lambda x: F(x, [(x.topic(), 99, 0)]))
FE("bad names", lambda x: F(x, [("a b", 0, 0), ("", 0, 0)]))
FE("idle and unknown", lambda x: F(x, [(x.topic(), 0, 0), (x.name("n"), 0, 0)], wait=1500))
FE("only unknown", lambda x: F(x, [(x.name("n"), 0, 0)], wait=1500))
FE(
    "data and unknown",
    lambda x: (lambda t: (x.prod([(t, 0, bt())]), F(x, [(t, 0, 0), (x.name("n"), 0, 0)], wait=1500))[1])(x.topic()),
)
FE("idle and out of range", lambda x: (lambda t: F(x, [(t, 0, 0), (t, 1, 55)], wait=1500))(x.topic(2)))
FE("idle and epoch too high", lambda x: (lambda t: F(x, [(t, 0, 0), (t, 1, 0, {"cle": 5})], wait=1500))(x.topic(2)))
FE("only idle", lambda x: F(x, [(x.topic(), 0, 0)], wait=1500))
for n, k in (("min_bytes 0", {"min": 0}), ("min_bytes -1", {"min": -1})):
    FE(n, lambda x, k=k: F(x, [(x.topic(), 0, 0)], wait=1500, **k))
FE("max_wait 0", lambda x: F(x, [(x.topic(), 0, 0)], wait=0))
FE("max_wait -1", lambda x: F(x, [(x.topic(), 0, 0)], wait=-1))
FE("no partitions", lambda x: F(x, [], wait=1500))
FE("topic without partitions", lambda x: F(x, [], wait=200, topics=[{"name": x.topic(), "parts": []}]))
FE(
    "min_bytes huge with data",
    lambda x: (lambda t: (x.prod([(t, 0, bt())]), F(x, [(t, 0, 0)], wait=1200, min=M))[1])(x.topic()),
)


def two_parts(x):
    t = x.topic(3)
    for _ in range(2):
        x.prod([(t, 0, bt()), (t, 1, bt())])
    return t


SZ = len(bt())
for n, k in (("max_bytes 0", {"max": 0}), ("max_bytes 1", {"max": 1}), ("max_bytes -1", {"max": -1})):
    FE(n, lambda x, k=k: F(x, (lambda t: [(t, 0, 0), (t, 1, 0)])(two_parts(x)), **k))
for m in (0, 1, -1):
    FE(
        "partition_max_bytes %d" % m,
        lambda x, m=m: F(x, (lambda t: [(t, 0, 0, {"max": m}), (t, 1, 0, {"max": m})])(two_parts(x))),
    )
FE("batch cut by partition_max_bytes", lambda x: F(x, (lambda t: [(t, 0, 0, {"max": SZ + 10})])(two_parts(x))))
FE("max_bytes: idle first", lambda x: F(x, (lambda t: [(t, 2, 0), (t, 0, 0), (t, 1, 0)])(two_parts(x)), max=1))
FE("partition order as asked", lambda x: F(x, (lambda t: [(t, 1, 0), (t, 2, 0), (t, 0, 0)])(two_parts(x))))
FE("same partition twice", lambda x: F(x, (lambda t: [(t, 0, 0), (t, 0, 1)])(two_parts(x))))
FE("replica_id 5", lambda x: F(x, [(two_parts(x), 0, 0)], replica=5))
FE("isolation 1", lambda x: F(x, [(two_parts(x), 0, 0)], iso=1))
FE("isolation 1 empty", lambda x: F(x, [(two_parts(x), 2, 0)], iso=1))
FE("isolation 2", lambda x: F(x, [(two_parts(x), 0, 0)], iso=2))
for e in (0, -1, -2, 5):
    FE("current_leader_epoch %d" % e, lambda x, e=e: F(x, [(two_parts(x), 0, 0, {"cle": e})]))
FE("v12 epoch too high", lambda x: F(x, [(two_parts(x), 0, 0, {"cle": 5})], v=12))
FE("v12 last_fetched_epoch 5", lambda x: F(x, [(two_parts(x), 0, 1, {"lfe": 5})], v=12))
FE("v12 last_fetched_epoch 0", lambda x: F(x, [(two_parts(x), 0, 1, {"lfe": 0})], v=12))
for v in (13, 16, 17, 18):
    FE("v%d by id" % v, lambda x, v=v: F(x, (lambda i: [(i, 0, 0), (i, 99, 0)])(topic_id(x.c, two_parts(x))), v=v))
    FE("v%d unknown and zero id" % v, lambda x, v=v: F(x, [(Z1, 0, 0), (ZERO, 0, 0)], v=v))
FE(
    "v13 unknown id beside idle",
    lambda x: F(x, (lambda i: [(i, 2, 0), (Z1, 0, 0)])(topic_id(x.c, two_parts(x))), v=13, wait=1500),
)
for n, k in (
    ("unknown id epoch 1", {"sid": 123, "sep": 1}),
    ("epoch -2", {"sid": 0, "sep": -2}),
    ("unknown id epoch 0", {"sid": 999, "sep": 0}),
    ("unknown id epoch -1", {"sid": 999, "sep": -1}),
    ("new", {"sid": 0, "sep": 0}),
    ("id 0 epoch 1", {"sid": 0, "sep": 1}),
):
    FE("session: " + n, lambda x, k=k: F(x, [(two_parts(x), 0, 0)], **k))


def sess(x):
    t = two_parts(x)
    r = F(x, [(t, 0, 0), (t, 2, 0), (t, 99, 0)], sid=0, sep=0)
    o = [r]
    if not isinstance(r, dict) or not r["sid"]:
        return o
    i = r["sid"]
    o.append(F(x, [], sid=i, sep=1))
    o.append(F(x, [], sid=i, sep=7))
    o.append(F(x, [], sid=i, sep=2))
    x.prod([(t, 2, bt())])
    o.append(F(x, [], sid=i, sep=3))
    o.append(F(x, [(t, 2, 1)], sid=i, sep=4, forget=[{"name": t, "parts": [0, 99]}]))
    o.append(F(x, [], sid=i, sep=5))
    o.append(F(x, [(t, 0, 0)], sid=i, sep=-1))
    o.append(F(x, [], sid=i, sep=6))
    return o


FE("session: life", sess)


def woken(x):
    t = x.topic()
    c = x.conn()
    c.send("Fetch", 11, fetch_body(11, [(t, 0, 0)], wait=4000))
    a = time.monotonic()
    time.sleep(0.3)
    x.prod([(t, 0, bt())])
    r = c.recv()
    return [r, "woken" if time.monotonic() - a < 1.2 else "late"]


FE("data ends the wait", woken)


def deleted(x):
    t = x.topic()
    c = x.conn()
    c.send("Fetch", 11, fetch_body(11, [(t, 0, 0)], wait=3500))
    a = time.monotonic()
    time.sleep(0.3)
    d = x.rq("DeleteTopics", 4, {"names": [t]})
    r = c.recv()
    return [d, r, "woken" if time.monotonic() - a < 1.5 else "late"]


FE("topic deleted during the wait", deleted)
for v in (4, 9, 10, 11):
    FE(
        "v%d zstd data" % v,
        lambda x, v=v: (lambda t: (x.prod([(t, 0, bt(n=3, codec="zstd"))]), F(x, [(t, 0, 0)], v=v))[1])(x.topic()),
    )
for v in (0, 1, 2, 3):
    FE(
        "v%d" % v,
        lambda x, v=v: (
            lambda c: (
                c.raw(
                    (lambda b: struct.pack(">i", len(b)) + b)(
                        struct.pack(">hhih", 1, v, 1, 1) + b"a" + struct.pack(">iiii", -1, 100, 1, 0)
                    )
                ),
                (lambda r: r if isinstance(r, str) else "answered")(c.frame(2)),
            )[1]
        )(x.conn()),
    )
FE(
    "mixed codecs in one log",
    lambda x: (
        lambda t: (
            [x.prod([(t, 0, bt(n=3, codec=k))]) for k in ("none", "gzip", "snappy", "lz4", "zstd")],
            F(x, [(t, 0, 0)]),
        )[1]
    )(x.topic()),
)

# ================================================================== listoffsets
S = "listoffsets"


def LO(x, t, p, ts, v=5, **k):
    return x.rq(
        "ListOffsets",
        v,
        {
            "topics": [{"name": t, "parts": [dict({"p": p, "ts": ts}, **{a: b for a, b in k.items() if a == "cle"})]}],
            **{a: b for a, b in k.items() if a != "cle"},
        },
    )


def oo(x):
    t = x.topic(2)
    x.prod([(t, 0, bt(n=3, ts=B0 + 10, deltas=[0, 40, 10]))])
    return t


for d in (0, 10, 11, 15, 20, 21, 50, 51):
    P(S, "times 10,50,20: %d" % d, lambda x, d=d: LO(x, oo(x), 0, B0 + d))
for ts in (-1, -2, -3, -4, -5, -6, -7):
    for v in (1, 5, 7, 8, 9, 11):
        P(
            S,
            "timestamp %d v%d" % (ts, v),
            lambda x, ts=ts, v=v: (lambda t: [LO(x, t, 0, ts, v), LO(x, t, 1, ts, v)])(oo(x)),
        )
P(
    S,
    "gzip batch exact",
    lambda x: (
        lambda t: (
            x.prod([(t, 0, bt(n=50, deltas=list(range(50)), codec="gzip"))]),
            [LO(x, t, 0, B0 + i) for i in (-1, 0, 1, 25, 49, 50)],
        )[1]
    )(x.topic()),
)
P(
    S,
    "append time",
    lambda x: (
        lambda t: (lambda m: [LO(x, t, 0, 5), LO(x, t, 0, m), LO(x, t, 0, m + 1), LO(x, t, 0, -3, 7)])(
            perr(x.prod([(t, 0, bt(n=3, ts=5))]))["lat"]
        )
    )(x.topic(1, {"message.timestamp.type": "LogAppendTime"})),
)
P(
    S,
    "unknown things",
    lambda x: [LO(x, x.topic(), 99, -1), LO(x, x.name("n"), 0, -1), LO(x, "", 0, -1), LO(x, x.name("n"), 0, -1, 1)],
)
for e in (0, 1, -2):
    P(S, "leader epoch %d" % e, lambda x, e=e: LO(x, oo(x), 0, -1, cle=e))
P(
    S,
    "same partition twice",
    lambda x: (
        lambda t: x.rq(
            "ListOffsets",
            5,
            {"topics": [{"name": t, "parts": [{"p": 0, "ts": -1}, {"p": 0, "ts": -2}, {"p": 1, "ts": -2}]}]},
        )
    )(oo(x)),
)
P(
    S,
    "same topic twice",
    lambda x: (
        lambda t: x.rq(
            "ListOffsets",
            5,
            {"topics": [{"name": t, "parts": [{"p": 0, "ts": -1}]}, {"name": t, "parts": [{"p": 0, "ts": -2}]}]},
        )
    )(oo(x)),
)
P(S, "no topics", lambda x: x.rq("ListOffsets", 5, {"topics": []}))
P(S, "isolation 1 and 2", lambda x: (lambda t: [LO(x, t, 0, -1, iso=1), LO(x, t, 0, -1, iso=2)])(oo(x)))
P(S, "replica ids", lambda x: (lambda t: [LO(x, t, 0, -1, replica=5), LO(x, t, 0, -1, replica=-2)])(oo(x)))
P(
    S,
    "records without time",
    lambda x: (lambda t: (x.prod([(t, 0, bt(n=2, ts=-1))]), [LO(x, t, 0, 0), LO(x, t, 0, -3, 7), LO(x, t, 0, -1)])[1])(
        x.topic()
    ),
)
P(
    S,
    "after DeleteRecords",
    lambda x: (lambda t: [LO(x, t, 0, -2), LO(x, t, 0, -1), LO(x, t, 0, 0), LO(x, t, 0, -3, 7), LO(x, t, 0, -4, 8)])(
        log310(x)
    ),
)
P(
    S,
    "everything deleted",
    lambda x: (
        lambda t: (
            x.rq("DeleteRecords", 1, {"topics": [{"name": t, "parts": [{"p": 0, "off": -1}]}]}),
            [LO(x, t, 0, -2), LO(x, t, 0, -1), LO(x, t, 0, 0), LO(x, t, 0, -3, 7)],
        )[1]
    )(log310(x)),
)
P(
    S,
    "maxTimestamp -1 batch",
    lambda x: (
        lambda t: (
            x.prod([(t, 0, bt(n=3, maxts=-1, deltas=[0, 5, 3]))]),
            [LO(x, t, 0, B0 + 4), LO(x, t, 0, B0 + 6), LO(x, t, 0, -3, 7)],
        )[1]
    )(x.topic()),
)


def OE(x, t, p, e, cur=-1, v=4):
    return x.rq("OffsetForLeaderEpoch", v, {"topics": [{"name": t, "parts": [{"p": p, "cle": cur, "epoch": e}]}]})


for n, a in (
    ("epoch 0", (0, 0)),
    ("epoch 5", (0, 5)),
    ("epoch -1", (0, -1)),
    ("current epoch 5", (0, 0, 5)),
    ("unknown partition", (99, 0)),
    ("empty log", (1, 0)),
    ("v2", (0, 0, -1, 2)),
    ("v3", (0, 0, -1, 3)),
):
    P(S, "OffsetForLeaderEpoch " + n, lambda x, a=a: OE(x, oo(x), *a))
P(S, "OffsetForLeaderEpoch unknown topic", lambda x: OE(x, x.name("n"), 0, 0))


def DR(x, t, p, o, v=1):
    return x.rq("DeleteRecords", v, {"topics": [{"name": t, "parts": [{"p": p, "off": o}]}]})


for o in (5, 3, 2, 10, 11, 20, -1, -2):
    P(S, "DeleteRecords log 3..9 to %d" % o, lambda x, o=o: (lambda t: [DR(x, t, 0, o), LO(x, t, 0, -2)])(log310(x)))
P(
    S,
    "DeleteRecords unknown",
    lambda x: [
        DR(x, x.topic(), 99, 0),
        DR(x, x.name("n"), 0, 0),
        DR(x, x.topic(), 0, -1, 0),
        DR(x, x.topic(), 0, -1, 2),
    ],
)
P(
    S,
    "DeleteRecords compacted",
    lambda x: (lambda t: (x.prod([(t, 0, bt())]), DR(x, t, 0, -1))[1])(x.topic(1, {"cleanup.policy": "compact"})),
)
P(
    S,
    "DeleteRecords same partition twice",
    lambda x: x.rq(
        "DeleteRecords", 1, {"topics": [{"name": log310(x), "parts": [{"p": 0, "off": 4}, {"p": 0, "off": 6}]}]}
    ),
)

# ================================================================== metadata
S = "metadata"


def MD(x, v, names, auto=False, **k):
    return x.rq(
        "Metadata",
        v,
        dict(
            {
                "topics": None if names is None else [n if isinstance(n, dict) else {"name": n} for n in names],
                **({"auto": auto} if v >= 4 else {}),
            },
            **k,
        ),
    )


for v in range(0, 14):
    P(S, "one topic v%d" % v, lambda x, v=v: MD(x, v, [x.topic(2)]))
for v in (1, 4, 9, 12, 13):
    (
        P(
            S,
            "unknown v%d" % v if v >= 4 else "unknown v1",
            lambda x, v=v: (lambda r: r if isinstance(r, str) else r["topics"])(MD(x, v, [x.name("n")])),
        )
        if v >= 4
        else None
    )
    P(S, "none v%d" % v, lambda x, v=v: MD(x, v, []))


def allhas(v, ts):
    def f(x):
        t = x.topic()
        r = x.rq("Metadata", v, {"topics": ts, **({"auto": False} if v >= 4 else {})})
        return r if isinstance(r, str) else [y for y in r["topics"] if y["name"] == t]

    return f


P(S, "all v0", allhas(0, []))
P(S, "all v1 null", allhas(1, None))
P(S, "all v9 null", allhas(9, None))
P(S, "all v12 null", allhas(12, None))
for n in ("", ".", "..", "x" * 249, "x" * 250, "a b", "a/b", "é", "a:b", "a,b"):
    P(
        S,
        "name %.6r (%d)" % (n, len(n)),
        lambda x, n=n: (lambda r: r if isinstance(r, str) else r["topics"])(MD(x, 9, [n])),
    )
P(S, "known, bad, unknown", lambda x: MD(x, 9, [x.name("n"), "a b", x.topic()]))
P(S, "order known first", lambda x: (lambda t: MD(x, 9, [x.name("n"), "a b", t])["topics"][0]["name"] == t)(x.topic()))
P(S, "same topic twice", lambda x: (lambda t: MD(x, 9, [t, t])["topics"])(x.topic()))
P(
    S,
    "order as asked",
    lambda x: (lambda a, b, c: [t["name"] for t in MD(x, 9, [c, a, b])["topics"]])(x.topic(), x.topic(), x.topic()),
)
P(S, "authorized operations", lambda x: MD(x, 9, [x.topic(), x.name("n")], cops=True, tops=True))
P(S, "v8 operations not asked", lambda x: MD(x, 8, [x.topic()]))
P(S, "v11 topic operations", lambda x: MD(x, 11, [x.topic()], tops=True))
for v in (12, 13):
    P(S, "v%d by id" % v, lambda x, v=v: (lambda t: MD(x, v, [{"id": topic_id(x.c, t), "name": None}]))(x.topic()))
    P(S, "v%d unknown id" % v, lambda x, v=v: [MD(x, v, [{"id": Z1, "name": None}]), x.alive()])
P(S, "v12 zero id null name", lambda x: [MD(x, 12, [{"id": ZERO, "name": None}]), x.alive()])
P(S, "v10 null name unknown id", lambda x: [MD(x, 10, [{"id": Z1, "name": None}]), x.alive()])
P(S, "v11 name and id", lambda x: [MD(x, 11, [{"id": Z1, "name": x.topic()}]), x.alive()])
P(S, "v12 name and unknown id", lambda x: MD(x, 12, [{"id": Z1, "name": x.topic()}]))


def recreate(x):
    t = x.topic()
    i = topic_id(x.c, t)
    x.rq("DeleteTopics", 4, {"names": [t]})
    time.sleep(0.4)
    e = mktopic(x.c, t)
    return [MD(x, 12, [{"id": i, "name": None}])["topics"], topic_id(x.c, t) != i, e]


P(S, "recreated topic has a new id", recreate)
P(
    S,
    "id is the same on every request",
    lambda x: (
        lambda t: topic_id(x.c, t)
        == topic_id(x.c, t)
        == next(y["id"] for y in MD(x, 13, None)["topics"] if y["name"] == t)
    )(x.topic()),
)
for v in (0, 1, 2):
    P(S, "DescribeCluster v%d" % v, lambda x, v=v: x.rq("DescribeCluster", v, {"cops": True}))
P(S, "DescribeCluster no ops", lambda x: x.rq("DescribeCluster", 0))
P(S, "DescribeCluster endpoint 2", lambda x: x.rq("DescribeCluster", 1, {"etype": 2}))
P(S, "DescribeCluster endpoint 0", lambda x: x.rq("DescribeCluster", 1, {"etype": 0}))
P(S, "DescribeCluster fenced", lambda x: x.rq("DescribeCluster", 2, {"fenced": True}))


def DTP(x, ts, lim=2000, cur=None):
    return x.rq("DescribeTopicPartitions", 0, {"topics": [{"name": t} for t in ts], "limit": lim, "cursor": cur})


def ab(x):
    """two topics whose names sort a < b"""
    r = os.urandom(5).hex()
    o = []
    for k in "ab":
        n = "dtp%s%s" % (r, k)
        x.names[n] = "<dtp-%s>" % k
        e = mktopic(x.c, n, 4 if k == "a" else 3)
        o.append(n)
        if e:
            raise Setup("CreateTopics -> %s" % e)
    return o


def sd(r):
    return (
        r
        if isinstance(r, str)
        else [[[t["name"], t["err"], [p["p"] for p in t["parts"]]] for t in r["topics"]], r["cursor"]]
    )


P(S, "DescribeTopicPartitions one", lambda x: DTP(x, [x.topic(2)]))
P(S, "DescribeTopicPartitions unknown", lambda x: DTP(x, [x.name("n"), x.topic()]))
P(S, "DescribeTopicPartitions bad names", lambda x: sd(DTP(x, ["a b", ""])))
for n, lim, cur in (
    ("name order", 2000, None),
    ("limit 3", 3, None),
    ("limit 4", 4, None),
    ("limit 0", 0, None),
    ("cursor a 3", 3, ("a", 3)),
    ("cursor b 1", 10, ("b", 1)),
    ("cursor beyond", 10, ("a", 99)),
    ("cursor -1", 10, ("a", -1)),
):
    P(
        S,
        "DescribeTopicPartitions " + n,
        lambda x, lim=lim, cur=cur: (
            lambda a, b: sd(DTP(x, [b, a], lim, cur and {"topic": a if cur[0] == "a" else b, "p": cur[1]}))
        )(*ab(x)),
        True,
    )
P(S, "DescribeTopicPartitions twice", lambda x: (lambda t: sd(DTP(x, [t, t])))(x.topic()))

# ================================================================== topics
S = "topics"


def T(n, p=1, rf=1, a=(), cf=()):
    return {
        "name": n,
        "n": p,
        "rf": rf,
        "assigns": [{"p": i, "brokers": b} for i, b in a],
        "configs": [{"name": k, "value": v} for k, v in cf],
    }


def CT(x, ts, v=5, validate=False, **k):
    r = x.rq("CreateTopics", v, dict({"topics": ts, "validate": validate}, **k))
    if isinstance(r, dict):
        for t in r["topics"]:
            if t.get("configs"):
                t["configs"] = [c for c in t["configs"] if c["name"] in ("retention.ms", "cleanup.policy")]
    return r


def nodeid(x):
    return x.rq("Metadata", 1, {"topics": []})["brokers"][0]["id"]


for v in range(2, 8):
    P(S, "create v%d" % v, lambda x, v=v: CT(x, [T(x.name(), 2, 1)], v))
P(S, "create -1/-1", lambda x: [CT(x, [T(x.name(), -1, -1)], 4)])
P(S, "exists", lambda x: CT(x, [T(x.topic())]))
P(S, "exists v7", lambda x: CT(x, [T(x.topic())], 7))
P(S, "exists, validate_only", lambda x: CT(x, [T(x.topic())], 5, True))
for n in ("", ".", "..", "a b", "x" * 250, "é", "a/b", "__cluster_metadata"):
    P(S, "name %.10r (%d)" % (n, len(n)), lambda x, n=n: CT(x, [T(n)]))
P(S, "name of 249", lambda x: CT(x, [T("y" * 249)], 5, True))
P(
    S,
    "collision",
    lambda x: (
        lambda n: (
            x.names.update({n + ".x": "<c.x>", n + "_x": "<c_x>"}),
            [CT(x, [T(n + ".x")]), CT(x, [T(n + "_x")])],
        )[1]
    )("cc" + os.urandom(5).hex()),
)
for p in (0, -2, 10001, 2**31 - 1):
    P(S, "partitions %d" % p, lambda x, p=p: CT(x, [T(x.name(), p, 1)], 5, True))
P(S, "partitions 1000", lambda x: CT(x, [T(x.name(), 1000, 1)], 5, True))
for f in (0, 2, 3, -2):
    P(S, "factor %d" % f, lambda x, f=f: CT(x, [T(x.name(), 1, f)]))
P(S, "factor 3 and partitions 0", lambda x: CT(x, [T(x.name(), 0, 3)]))
for n, p, rf, a in (
    ("good", -1, -1, ((0, 1), (1, 1))),
    ("with a number", 2, -1, ((0, 1), (1, 1))),
    ("with a factor", -1, 1, ((0, 1),)),
    ("gap", -1, -1, ((0, 1), (2, 1))),
    ("partition twice", -1, -1, ((0, 1), (0, 1))),
    ("unknown broker", -1, -1, ((0, 9),)),
    ("broker twice", -1, -1, ((0, 11),)),
    ("no brokers", -1, -1, ((0, 0),)),
    ("starts at 1", -1, -1, ((1, 1),)),
):
    P(
        S,
        "assignments " + n,
        lambda x, p=p, rf=rf, a=a: (
            lambda i: CT(x, [T(x.name(), p, rf, [(q, {1: [i], 9: [i + 977], 11: [i, i], 0: []}[b]) for q, b in a])])
        )(nodeid(x)),
    )
for cf in (
    (("nonsense", "1"),),
    (("retention.ms", "abc"),),
    (("retention.ms", "-2"),),
    (("retention.ms", None),),
    (("retention.ms", ""),),
    (("retention.ms", "-1"),),
    (("retention.ms", "3600000"),),
    (("retention.bytes", "1000000"),),
    (("cleanup.policy", "bogus"),),
    (("cleanup.policy", "compact"),),
    (("cleanup.policy", "compact,delete"),),
    (("cleanup.policy", "delete"),),
    (("cleanup.policy", ""),),
    (("segment.bytes", "1"),),
    (("segment.bytes", "1073741824"),),
    (("compression.type", "zip"),),
    (("compression.type", "lz4"),),
    (("compression.type", "producer"),),
    (("retention.ms", "5"), ("retention.ms", "6")),
    (("max.message.bytes", "-1"),),
    (("max.message.bytes", "2000000"),),
    (("message.timestamp.type", "X"),),
    (("message.timestamp.type", "LogAppendTime"),),
    (("min.insync.replicas", "0"),),
    (("min.insync.replicas", "1"),),
    (("min.insync.replicas", "2"),),
    (("", ""),),
    (("log.retention.ms", "5"),),
    (("message.format.version", "2.0"),),
    (("unclean.leader.election.enable", "true"),),
    (("flush.messages", "1"),),
):
    P(S, "config %s" % ",".join("%s=%s" % q for q in cf), lambda x, cf=cf: CT(x, [T(x.name(), 1, 1, (), cf)], 5, True))
P(S, "name twice", lambda x: (lambda a: CT(x, [T(a), T(a), T(x.name())]))(x.name()))
P(S, "one bad of three", lambda x: CT(x, [T(x.name()), T("a b"), T(x.name())]))
P(S, "empty list", lambda x: CT(x, []))
P(S, "timeout 0", lambda x: CT(x, [T(x.name())], timeout=0))
P(S, "timeout -1", lambda x: CT(x, [T(x.name())], timeout=-1))


def vo(v):
    def f(x):
        n = x.name()
        r = CT(x, [T(n, 3, 1)], v, True)
        return [r, MD(x, 4, [n])["topics"]]

    return f


P(S, "validate_only v2", vo(2))
P(S, "validate_only v5", vo(5))
P(S, "validate_only v7", vo(7))
P(
    S,
    "produce right after create",
    lambda x: (lambda n: (CT(x, [T(n)]), perr(x.prod([(n, 0, bt())]))["err"] in (0, 6))[1])(x.name()),
)
P(
    S,
    "metadata right after create",
    lambda x: (lambda n: (CT(x, [T(n, 3)]), time.sleep(0.3), MD(x, 4, [n])["topics"])[2])(x.name()),
)


def DT(x, ns, v=4):
    return x.rq("DeleteTopics", v, {"names": ns} if v < 6 else {"topics": ns})


for v in (1, 3, 4, 5):
    P(S, "delete v%d" % v, lambda x, v=v: DT(x, [x.topic(), x.name("n"), "a b", ""], v))
P(S, "delete twice", lambda x: (lambda t: [DT(x, [t, t], 5), MD(x, 4, [t])["topics"][0]["err"]])(x.topic()))
P(S, "delete and look", lambda x: (lambda t: (DT(x, [t]), time.sleep(0.3), MD(x, 4, [t])["topics"])[2])(x.topic()))
P(S, "delete none", lambda x: DT(x, []))
Z = lambda x, n: {"name": n, "id": ZERO}
I = lambda i: {"name": None, "id": i}
P(S, "delete v6 by name", lambda x: DT(x, [Z(x, x.topic())], 6))
P(S, "delete v6 by id", lambda x: DT(x, [I(topic_id(x.c, x.topic()))], 6))
P(S, "delete v6 unknown", lambda x: DT(x, [Z(x, x.name("n")), I(Z1)], 6))
P(S, "delete v6 zero id", lambda x: DT(x, [I(ZERO)], 6))
P(S, "delete v6 both", lambda x: (lambda t: DT(x, [{"name": t, "id": topic_id(x.c, t)}], 6))(x.topic()))
P(
    S,
    "delete v6 name and id of one",
    lambda x: (lambda t: [DT(x, [Z(x, t), I(topic_id(x.c, t))], 6), MD(x, 4, [t])["topics"][0]["err"]])(x.topic()),
)
P(S, "delete v6 id twice", lambda x: DT(x, [I(Z2), I(Z2)], 6))


def CP(n, cnt, a=None, v=2, vo=False, name=None):
    def f(x):
        t = name or x.topic(2)
        r = x.rq(
            "CreatePartitions",
            v,
            {
                "topics": [
                    {
                        "name": t,
                        "count": cnt,
                        "assigns": (
                            a
                            if a is None
                            else [{"brokers": [nodeid(x) if b == 1 else nodeid(x) + 977 for b in bs]} for bs in a]
                        ),
                    }
                ],
                "validate": vo,
            },
        )
        return [r, x.alive()] + ([] if name else [len(MD(x, 4, [t])["topics"][0]["parts"])])

    P(S, "CreatePartitions " + n, f)


for v in (0, 1, 2, 3):
    CP("to 3 v%d" % v, 3, v=v)
for n, c, a in (
    ("same", 2, None),
    ("less", 1, None),
    ("0", 0, None),
    ("-1", -1, None),
    ("100000", 100000, None),
    ("assignments", 3, [[1]]),
    ("wrong number", 4, [[1]]),
    ("unknown broker", 3, [[9]]),
    ("empty assignments", 3, []),
    ("two replicas", 3, [[1, 9]]),
    ("no brokers", 3, [[]]),
):
    CP(n, c, a)
CP("validate_only", 3, vo=True)
CP("bad name", 3, name="a b")
CP("unknown", 3, name="nope-nope-nope")
P(
    S,
    "CreatePartitions twice",
    lambda x: (lambda t: x.rq("CreatePartitions", 2, {"topics": [{"name": t, "count": 4}, {"name": t, "count": 5}]}))(
        x.topic()
    ),
)
P(S, "CreatePartitions none", lambda x: x.rq("CreatePartitions", 2, {"topics": []}))


# ================================================================== configs
S = "configs"


def DC(x, rs, v=4, **k):
    r = x.rq("DescribeConfigs", v, dict({"res": [{"type": t, "name": n, "keys": y} for t, n, y in rs]}, **k))
    if isinstance(r, dict):
        for q in r["res"]:
            for c in q["configs"]:
                if c.get("doc"):
                    c["doc"] = "<text>"
    return r


KS = ["retention.ms", "cleanup.policy", "segment.bytes"]
BIG = {
    "retention.ms",
    "cleanup.policy",
    "retention.bytes",
    "max.message.bytes",
    "segment.bytes",
    "compression.type",
    "min.insync.replicas",
    "message.timestamp.type",
}


def some(r):
    if isinstance(r, dict):
        for q in r["res"]:
            q["configs"] = [c for c in q["configs"] if c["name"] in BIG]
    return r


for v in (1, 2, 3, 4):
    P(
        S,
        "describe v%d" % v,
        lambda x, v=v: DC(x, [(2, x.topic(1, {"retention.ms": "100000"}), ["retention.ms", "retention.bytes"])], v),
    )
P(S, "all by null", lambda x: some(DC(x, [(2, x.topic(), None)])))
P(S, "all by empty", lambda x: some(DC(x, [(2, x.topic(), [])])))
P(S, "unknown key", lambda x: DC(x, [(2, x.topic(), ["nonsense", "retention.ms"])]))
P(S, "key twice", lambda x: DC(x, [(2, x.topic(), ["retention.ms"] * 2)]))
P(S, "synonyms set", lambda x: DC(x, [(2, x.topic(1, {"retention.ms": "100000"}), ["retention.ms"])], 4, syn=True))
P(S, "synonyms default", lambda x: DC(x, [(2, x.topic(), ["retention.ms"])], 1, syn=True))
P(S, "documentation", lambda x: DC(x, [(2, x.topic(), ["retention.ms"])], 4, doc=True))
P(S, "unknown topic", lambda x: DC(x, [(2, x.name("n"), None)]))
P(S, "bad names", lambda x: DC(x, [(2, "a b", None), (2, "", None)]))
for t in (0, 3, 99, -1):
    P(S, "type %d" % t, lambda x, t=t: DC(x, [(t, "x", None)]))
P(S, "type 99 beside a topic", lambda x: DC(x, [(99, "x", None), (2, x.topic(), ["retention.ms"])]))
P(S, "resource twice", lambda x: (lambda t: DC(x, [(2, t, ["retention.ms"]), (2, t, ["cleanup.policy"])]))(x.topic()))
P(S, "no resources", lambda x: DC(x, []))
for n in ("", "977", "abc"):
    P(
        S,
        "broker %r" % n,
        lambda x, n=n: (lambda r: r if isinstance(r, str) else [q["err"] for q in r["res"]])(
            DC(x, [(4, n, ["num.partitions"])])
        ),
    )
P(
    S,
    "broker keys",
    lambda x: (
        lambda r: r if isinstance(r, str) else [[q["err"], sorted(c["name"] for c in q["configs"])] for q in r["res"]]
    )(
        DC(
            x,
            [
                (
                    4,
                    str(nodeid(x)),
                    [
                        "num.partitions",
                        "nonsense",
                        "log.retention.ms",
                        "auto.create.topics.enable",
                        "message.max.bytes",
                    ],
                )
            ],
        )
    ),
)


def val(x, t, ks=KS):
    """a change may take a moment to show"""
    time.sleep(0.15)
    r = x.rq("DescribeConfigs", 1, {"res": [{"type": 2, "name": t, "keys": ks}]})
    return r if isinstance(r, str) else {c["name"]: "%s/%d" % (c["value"], c["source"]) for c in r["res"][0]["configs"]}


def IA(name, cs, cfg=None, vo=False, v=1):
    def f(x):
        t = x.topic(1, cfg)
        o = []
        for c in (cs if isinstance(cs[0], list) else [cs]) if cs else [cs]:
            o.append(
                [
                    x.rq(
                        "IncrementalAlterConfigs",
                        v,
                        {
                            "res": [
                                {"type": 2, "name": t, "configs": [{"name": a, "op": b, "value": y} for a, b, y in c]}
                            ],
                            "validate": vo,
                        },
                    ),
                    val(x, t),
                ]
            )
        return o

    P(S, "incremental " + name, f)


for n, cs in (
    ("set", [("retention.ms", 0, "5000")]),
    ("set equal to default", [("retention.ms", 0, "604800000")]),
    ("set -1", [("retention.ms", 0, "-1")]),
    ("append", [("cleanup.policy", 2, "compact")]),
    ("append twice", [[("cleanup.policy", 2, "compact")], [("cleanup.policy", 2, "compact")]]),
    ("subtract absent", [("cleanup.policy", 3, "compact")]),
    ("subtract last", [("cleanup.policy", 3, "delete")]),
    ("delete set", [[("retention.ms", 0, "5000")], [("retention.ms", 1, None)]]),
    ("delete unset", [("retention.ms", 1, None)]),
    ("append non-list", [("retention.ms", 2, "1")]),
    ("key twice", [("retention.ms", 0, "1"), ("retention.ms", 0, "2")]),
    ("unknown key", [("nonsense", 0, "1")]),
    ("delete unknown key", [("nonsense", 1, None)]),
    ("op 7", [("retention.ms", 7, "1")]),
    ("bad value", [("retention.ms", 0, "abc")]),
    ("null value", [("retention.ms", 0, None)]),
    ("good and bad", [("retention.ms", 0, "777000"), ("segment.bytes", 0, "abc")]),
    ("empty", []),
    ("empty key", [("", 0, "1")]),
    ("cleanup.policy delete", [("cleanup.policy", 0, "delete")]),
):
    IA(n, cs)
IA("validate_only", [("retention.ms", 0, "9990")], vo=True)
IA("v0", [("retention.ms", 0, "5000")], v=0)


def IR(x, rs, v=1):
    return x.rq(
        "IncrementalAlterConfigs",
        v,
        {
            "res": [
                {"type": t, "name": n, "configs": [{"name": a, "op": b, "value": y} for a, b, y in cs]}
                for t, n, cs in rs
            ]
        },
    )


R = [("retention.ms", 0, "888000")]
P(
    S,
    "incremental unknown topic beside good",
    lambda x: (lambda t: [IR(x, [(2, x.name("n"), R), (2, t, R)]), val(x, t)])(x.topic()),
)
P(S, "incremental bad names", lambda x: IR(x, [(2, "a b", R), (2, "", R)]))
P(S, "incremental resource twice", lambda x: (lambda t: [IR(x, [(2, t, R), (2, t, R)]), val(x, t)])(x.topic()))
for t in (0, 99):
    P(S, "incremental type %d" % t, lambda x, t=t: IR(x, [(t, "x", R)]))
P(S, "incremental none", lambda x: IR(x, []))
P(S, "incremental broker read-only key", lambda x: IR(x, [(4, str(nodeid(x)), [("log.dirs", 0, "/x")])]))
P(S, "incremental broker 977", lambda x: IR(x, [(4, "977", [("log.cleaner.threads", 0, "1")])]))


def AC(name, cs, vo=False, v=1, cfg={"retention.ms": "100000", "segment.bytes": "2000000"}):
    def f(x):
        t = x.topic(1, cfg)
        return [
            x.rq(
                "AlterConfigs",
                v,
                {"res": [{"type": 2, "name": t, "configs": [{"name": a, "value": b} for a, b in cs]}], "validate": vo},
            ),
            val(x, t),
        ]

    P(S, "alter " + name, f)


for v in (0, 1, 2):
    AC("one of two v%d" % v, [("retention.ms", "200000")], v=v)
AC("validate_only", [("retention.ms", "200000")], vo=True)
AC("one bad", [("retention.ms", "200000"), ("segment.bytes", "abc")])
AC("unknown key", [("retention.ms", "200000"), ("nonsense", "abc")])
AC("key twice", [("retention.ms", "1"), ("retention.ms", "2")])
AC("null value", [("retention.ms", None)])
AC("empty", [])
AC("with cleanup.policy", [("retention.ms", "200000"), ("cleanup.policy", "delete")])
P(
    S,
    "alter fresh topic",
    lambda x: (
        lambda t: [
            x.rq(
                "AlterConfigs",
                1,
                {"res": [{"type": 2, "name": t, "configs": [{"name": "retention.ms", "value": "200000"}]}]},
            ),
            val(x, t),
        ]
    )(x.topic()),
)
P(
    S,
    "alter unknown topic",
    lambda x: x.rq(
        "AlterConfigs",
        1,
        {"res": [{"type": 2, "name": x.name("n"), "configs": [{"name": "retention.ms", "value": "1"}]}]},
    ),
)
P(
    S,
    "alter type 99",
    lambda x: x.rq("AlterConfigs", 1, {"res": [{"type": 99, "name": "x", "configs": [{"name": "a", "value": "1"}]}]}),
)
P(
    S,
    "alter resource twice",
    lambda x: (
        lambda t: x.rq(
            "AlterConfigs",
            1,
            {"res": [{"type": 2, "name": t, "configs": [{"name": "retention.ms", "value": "1"}]}] * 2},
        )
    )(x.topic()),
)


# ------------------------------------------------------------------ running
def run_probe(pr, boot):
    sec, name, f, order = pr
    box = {}
    x = X(boot)

    def go():
        try:
            box["v"] = norm(f(x), x, None, order, "batch" in name.split())
        except Setup as e:
            box["v"] = "setup: %s" % e
        except (OSError, ConnectionError) as e:
            box["v"] = "closed" if not isinstance(e, ConnectionRefusedError) else "refused"
        except Exception as e:
            box["v"] = "unusable answer: %s" % re.sub(r"0x[0-9a-f]+", "", repr(e))[:120]

    th = threading.Thread(target=go, daemon=True)
    th.start()
    th.join(LIMIT)
    v = box.get("v", SILENT)
    x.close()
    return json.loads(json.dumps(v))


def run_all(ps, boot, jobs):
    with concurrent.futures.ThreadPoolExecutor(jobs) as ex:
        return list(ex.map(lambda p: run_probe(p, boot), ps))

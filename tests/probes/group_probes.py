"""The probes of consumer groups and of their offsets.

J, SY, HB, L, OC, OF, OD, LG: one JoinGroup, SyncGroup, Heartbeat, LeaveGroup, OffsetCommit, OffsetFetch, OffsetDelete, ListGroups. full: a member
of a Stable group of its own.
"""

import struct, threading, time

from kwire import topic_id
from probes import DT, P, Setup, Z1

# ================================================================== groups
S = "groups"
for v in (0, 1, 2, 3):
    P(S, "FindCoordinator v%d" % v, lambda x, v=v: x.rq("FindCoordinator", v, {"key": x.g()}))
    P(S, "FindCoordinator v%d empty key" % v, lambda x, v=v: x.rq("FindCoordinator", v, {"key": ""}))
for v in (1, 2, 3):
    P(S, "FindCoordinator v%d type 3" % v, lambda x, v=v: x.rq("FindCoordinator", v, {"key": "x", "type": 3}))
for v in (4, 5, 6):
    P(
        S,
        "FindCoordinator v%d" % v,
        lambda x, v=v: [
            x.rq("FindCoordinator", v, {"keys": k, "type": t})
            for k, t in (([x.g(), x.g()], 0), ([""], 0), (["g", "g"], 0), ([], 0), (["x"], 3))
        ],
    )


def J(
    x,
    g,
    member="",
    v=5,
    session=10000,
    rebalance=10000,
    ptype="consumer",
    protos=("range",),
    inst=None,
    meta=b"\0\1",
    con=None,
):
    b = {
        "group": g,
        "session": session,
        "member": member,
        "ptype": ptype,
        "protos": [{"name": p, "meta": meta} for p in protos],
    }
    if v >= 1:
        b["rebalance"] = rebalance
    if v >= 5:
        b["inst"] = inst
    if con is None:
        return x.rq("JoinGroup", v, b)
    r = con.rq("JoinGroup", v, b)
    x.member(r["member"] if isinstance(r, dict) else None)
    return r


def SY(x, g, m, gen, v=3, assigns=(), inst=None, **k):
    return x.rq(
        "SyncGroup",
        v,
        dict(
            {"group": g, "gen": gen, "member": m, "assigns": [{"member": a, "data": b} for a, b in assigns]},
            **({"inst": inst} if v >= 3 else {}),
            **k
        ),
    )


def HB(x, g, m, gen, v=3, inst=None):
    return x.rq("Heartbeat", v, dict({"group": g, "gen": gen, "member": m}, **({"inst": inst} if v >= 3 else {})))


def full(x, g, **k):
    r = J(x, g, **k)
    if isinstance(r, str):
        raise Setup("JoinGroup -> " + r)
    if r["err"] == 79:
        r = J(x, g, member=r["member"], **k)
    if r["err"]:
        raise Setup("JoinGroup -> %d" % r["err"])
    s = SY(x, g, r["member"], r["gen"], assigns=[(r["member"], b"\1\2")], inst=k.get("inst"))
    if isinstance(s, str) or s["err"]:
        raise Setup("SyncGroup -> %s" % (s if isinstance(s, str) else s["err"]))
    return r["member"], r["gen"]


P(S, "join empty group", lambda x: [J(x, ""), J(x, "", v=2), J(x, "", v=7)])
for st in (5999, 6000, 1800000, 1800001, 0, -1):
    P(
        S,
        "join session %d" % st,
        lambda x, st=st: (lambda r: r if isinstance(r, str) else r["err"])(J(x, x.g(), v=2, session=st)),
    )
P(S, "join unknown member", lambda x: [J(x, x.g(), "nobody"), J(x, x.g(), "nobody", v=2)])
P(S, "join no protocols", lambda x: [J(x, x.g(), protos=()), J(x, x.g(), v=2, protos=())])
P(S, "join empty type", lambda x: J(x, x.g(), ptype=""))
for v in range(0, 10):

    def f(x, v=v):
        g = x.g()
        r = J(x, g, v=v)
        return [r, J(x, g, r["member"], v=v) if isinstance(r, dict) and r["err"] == 79 else None]

    P(S, "join v%d" % v, f)
P(S, "member id has the client id", lambda x: J(x, x.g(), v=2)["member"].startswith("probes-"))
P(S, "join static", lambda x: J(x, x.g(), inst="i1"))
P(S, "join static v9", lambda x: J(x, x.g(), v=9, inst="i1"))


def pend(x):
    g = x.g()
    r = J(x, g)
    m = r["member"]
    time.sleep(0.3)
    return [
        x.rq("DescribeGroups", 5, {"groups": [g]}),
        HB(x, g, m, -1),
        HB(x, g, m, 0),
        SY(x, g, m, 0),
        x.rq("LeaveGroup", 3, {"group": g, "members": [{"member": m}]}),
        J(x, g, m),
    ]


P(S, "pending member", pend)


def st(f):
    def h(x):
        g = x.g()
        m, gen = full(x, g)
        return f(x, g, m, gen)

    return h


P(
    S,
    "heartbeat",
    st(
        lambda x, g, m, n: [
            HB(x, g, m, n),
            HB(x, g, m, n + 1),
            HB(x, g, m, 0),
            HB(x, g, m, -1),
            HB(x, g, "x", n),
            HB(x, x.g(), "x", 0),
            HB(x, "", "x", 0),
            HB(x, g, "", n),
            HB(x, g, m, n, 3, "zz"),
            HB(x, g, m, n, 0),
            HB(x, g, m, n, 4),
        ]
    ),
)
P(
    S,
    "sync stable",
    st(
        lambda x, g, m, n: [
            SY(x, g, m, n),
            SY(x, g, m, n + 1),
            SY(x, g, "x", n),
            SY(x, x.g(), "x", 0),
            SY(x, "", "x", 0),
            SY(x, g, m, n, inst="zz"),
            SY(x, g, m, n, 0),
        ]
    ),
)
P(
    S,
    "sync v5",
    st(
        lambda x, g, m, n: [
            SY(x, g, m, n, 5, ptype="consumer", proto="range"),
            SY(x, g, m, n, 5, ptype="other", proto="range"),
            SY(x, g, m, n, 5, ptype="consumer", proto="rr"),
            SY(x, g, m, n, 5),
        ]
    ),
)
P(
    S,
    "join clashing",
    st(lambda x, g, m, n: [J(x, g, ptype="other"), J(x, g, protos=("rr",)), J(x, g, v=2, protos=("rr",))]),
)
P(S, "describe stable", st(lambda x, g, m, n: [x.rq("DescribeGroups", v, {"groups": [g]}) for v in (0, 1, 3, 4, 5, 6)]))
P(
    S,
    "describe operations",
    st(lambda x, g, m, n: x.rq("DescribeGroups", 3, {"groups": [g], "ops": True})["groups"][0]["ops"]),
)
for v in (0, 3, 5, 6):
    P(S, "describe unknown v%d" % v, lambda x, v=v: x.rq("DescribeGroups", v, {"groups": [x.g()]}))
P(S, "describe none", lambda x: x.rq("DescribeGroups", 5, {"groups": []}))
P(
    S,
    "describe twice",
    st(lambda x, g, m, n: [(q["group"], q["state"]) for q in x.rq("DescribeGroups", 5, {"groups": [g, g]})["groups"]]),
)


def completing(x):
    g = x.g()
    r = J(x, g, v=2)
    m, n = r["member"], r["gen"]
    return [
        x.rq("DescribeGroups", 5, {"groups": [g]}),
        HB(x, g, m, n),
        OC(x, g, n, m, x.topic(), [(0, 1)]),
        J(x, g, m, v=2)["gen"],
        J(x, g, m, v=2, meta=b"z")["gen"],
    ]


P(S, "completing rebalance", completing)
P(S, "leader rejoins", st(lambda x, g, m, n: (lambda r: [r, r["gen"] - n])(J(x, g, m))))
P(
    S,
    "rebalance timeout 0",
    lambda x: (
        lambda g: (lambda r: [r, (time.sleep(0.1), SY(x, g, r["member"], r["gen"], 1))[1]])(J(x, g, v=2, rebalance=0))
    )(x.g()),
)
P(
    S,
    "rebalance timeout -1",
    lambda x: (
        lambda g: (lambda r: [r, (time.sleep(0.1), SY(x, g, r["member"], r["gen"], 1))[1]])(J(x, g, v=2, rebalance=-1))
    )(x.g()),
)


def second(x):
    """a second member joins: the first gets 27, rejoins, both sync"""
    g = x.g()
    m, n = full(x, g, v=2)
    c = x.conn()
    x2 = {}
    th = threading.Thread(target=lambda: x2.update(r=J(x, g, v=2, con=c)), daemon=True)
    th.start()
    time.sleep(0.3)
    o = [
        x.rq("DescribeGroups", 5, {"groups": [g]})["groups"][0]["state"],
        HB(x, g, m, n),
        SY(x, g, m, n),
        OC(x, g, n, m, x.topic(), [(0, 1)]),
        HB(x, g, m, n - 1),
    ]
    r = J(x, g, m, v=2)
    th.join(3)
    q = x2.get("r")
    if not isinstance(q, dict) or not isinstance(r, dict):
        return o + [r, q]
    o += [
        r["err"],
        r["gen"] - n,
        q["err"],
        q["gen"] == r["gen"],
        r["leader"] == q["leader"],
        len(r["members"]),
        len(q["members"]),
    ]
    lead, fol = (r, q) if r["leader"] == r["member"] else (q, r)
    o.append(lead is r)
    c.send("SyncGroup", 1, {"group": g, "gen": fol["gen"], "member": fol["member"], "assigns": []})
    time.sleep(0.1)
    s = SY(x, g, lead["member"], lead["gen"], 1, [(lead["member"], b"L"), (fol["member"], b"F")])
    return o + [s, c.recv()]


P(S, "two members", second)


def midsync(x):
    """a follower waits in sync when a third member joins"""
    g = x.g()
    m, n = full(x, g, v=2)
    c = x.conn()
    x2 = {}
    th = threading.Thread(target=lambda: x2.update(r=J(x, g, v=2, con=c)), daemon=True)
    th.start()
    time.sleep(0.2)
    r = J(x, g, m, v=2)
    th.join(3)
    q = x2["r"]
    c.send("SyncGroup", 1, {"group": g, "gen": q["gen"], "member": q["member"], "assigns": []})
    time.sleep(0.2)
    d = x.conn()
    d.send(
        "JoinGroup",
        2,
        {
            "group": g,
            "session": 10000,
            "rebalance": 10000,
            "member": "",
            "ptype": "consumer",
            "protos": [{"name": "range", "meta": b""}],
        },
    )
    return [c.recv(3), HB(x, g, m, r["gen"])]


P(S, "waiting sync and a new member", midsync)


def L(x, g, ms, v=3):
    return x.rq("LeaveGroup", v, {"group": g, "members": [{"member": a, "inst": b} for a, b in ms]})


for v in (0, 1, 2):
    P(
        S,
        "leave v%d" % v,
        st(
            lambda x, g, m, n, v=v: [
                x.rq("LeaveGroup", v, {"group": x.g(), "member": "x"}),
                x.rq("LeaveGroup", v, {"group": g, "member": "x"}),
                x.rq("LeaveGroup", v, {"group": g, "member": m}),
                x.rq("LeaveGroup", v, {"group": g, "member": m}),
                x.rq("DescribeGroups", 5, {"groups": [g]}),
            ]
        ),
    )
P(
    S,
    "leave v3",
    st(
        lambda x, g, m, n: [
            L(x, x.g(), [("x", None)]),
            L(x, "", [("x", None)]),
            L(x, g, [("x", None)]),
            L(x, g, []),
            L(x, g, [("", "zz")]),
            L(x, g, [(m, "zz")]),
            L(x, g, [(m, None)]),
            L(x, g, [(m, None)]),
        ]
    ),
)
P(S, "leave order", st(lambda x, g, m, n: L(x, g, [("x", None), (m, None), ("y", None)])))
P(S, "leave v4 and v5", st(lambda x, g, m, n: [L(x, g, [("x", None)], 4), L(x, g, [(m, None)], 5)]))
P(S, "generation goes on through Empty", st(lambda x, g, m, n: (L(x, g, [(m, None)]), J(x, g, v=2)["gen"] - n)[1]))
P(S, "unsynced generations", lambda x: (lambda g: J(x, g, v=2)["gen"])(x.g()))


def static(x):
    g = x.g()
    m, n = full(x, g, inst="i1")
    r = J(x, g, inst="i1")
    o = [
        r["err"],
        r["gen"] - n,
        r["leader"] == m,
        r["member"] != m,
        len(r["members"]),
        HB(x, g, m, n, 3, "i1"),
        HB(x, g, m, n),
        SY(x, g, m, n, inst="i1"),
        OC(x, g, n, m, x.topic(), [(0, 1)], inst="i1"),
        J(x, g, m, inst="i1")["err"],
        SY(x, g, r["member"], r["gen"], inst="i1"),
        HB(x, g, r["member"], r["gen"], 3, "i1"),
    ]
    q = J(x, g, v=9, inst="i1")
    o += [
        q["err"],
        q["gen"] - n,
        q.get("skip"),
        q["leader"] == q["member"],
        len(q["members"]),
        J(x, g, "foo", inst="nn")["err"],
        L(x, g, [("zzz", "i1")]),
        L(x, g, [("", "i1")]),
        x.rq("DescribeGroups", 5, {"groups": [g]})["groups"][0]["state"],
    ]
    return o


P(S, "static member", static)


def static2(x):
    g = x.g()
    r = J(x, g, inst="i")
    q = J(x, g, inst="i")
    SY(x, g, q["member"], q["gen"], assigns=[(q["member"], b"x")], inst="i")
    s = J(x, g, inst="i", protos=("rr", "range"))
    return [q["err"], q["gen"] - r["gen"], s["err"], s["gen"] - q["gen"], s["proto"]]


P(S, "static member comes back in CompletingRebalance", static2)


def LG(x, v, g, **k):
    r = x.rq("ListGroups", v, k)
    return r if isinstance(r, str) else [r["err"], [q for q in r["groups"] if q["group"] == g]]


for v in range(0, 6):
    P(S, "list v%d" % v, st(lambda x, g, m, n, v=v: LG(x, v, g)))
for f in (["Stable"], ["stable"], ["Empty"], ["bogus"], ["bogus", "Stable"], [""]):
    P(S, "list states %s" % f, st(lambda x, g, m, n, f=f: LG(x, 4, g, states=f)))
for f in (["classic"], ["Classic"], ["consumer"], ["bogus"]):
    P(S, "list types %s" % f, st(lambda x, g, m, n, f=f: LG(x, 5, g, types=f)))
for v in (0, 1, 2, 3):
    P(
        S,
        "DeleteGroups v%d" % v,
        st(
            lambda x, g, m, n, v=v: (
                lambda e: (
                    OC(x, e, -1, "", x.topic(), [(0, 1)]),
                    x.rq("DeleteGroups", v, {"groups": [g, e, x.g()]}),
                    LG(x, 0, e),
                )[1:]
            )(x.g())
        ),
    )
P(
    S,
    "DeleteGroups twice",
    lambda x: (lambda e: (OC(x, e, -1, "", x.topic(), [(0, 1)]), x.rq("DeleteGroups", 2, {"groups": [e, e]}))[1])(
        x.g()
    ),
)
P(
    S,
    "socket closed, member stays",
    lambda x: (
        lambda g, c: (
            J(x, g, v=2, con=c),
            c.close(),
            time.sleep(0.3),
            x.rq("DescribeGroups", 5, {"groups": [g]})["groups"][0]["members"],
        )[3]
    )(x.g(), x.conn()),
)

# ================================================================== offsets
S = "offsets"


def OC(x, g, gen, m, t, parts, v=7, inst=None, meta="", **k):
    r = x.rq(
        "OffsetCommit",
        v,
        dict(
            {
                "group": g,
                "gen": gen,
                "member": m,
                "topics": (
                    [{("id" if v >= 10 else "name"): t, "parts": [{"p": p, "off": o, "meta": meta} for p, o in parts]}]
                    if t is not None
                    else []
                ),
            },
            **({"inst": inst} if v >= 7 else {}),
            **k
        ),
    )
    return r


def OF(x, g, ts, v=5, **k):
    return x.rq(
        "OffsetFetch",
        v,
        dict({"group": g, "topics": None if ts is None else [{"name": n, "parts": p} for n, p in ts]}, **k),
    )


for v in range(2, 10):
    P(
        S,
        "commit v%d and fetch" % v,
        lambda x, v=v: (lambda g, t: [OC(x, g, -1, "", t, [(0, 5)], v), OF(x, g, [(t, [0])])])(x.g(), x.topic()),
    )
P(
    S,
    "commit v10 by id",
    lambda x: (
        lambda g, t: [
            OC(x, g, -1, "", topic_id(x.c, t), [(0, 5)], 10),
            OC(x, g, -1, "", Z1, [(0, 5)], 10),
            OF(x, g, None),
        ]
    )(x.g(), x.topic()),
)
P(
    S,
    "commit in an active group",
    lambda x: (
        lambda g, t: (
            lambda m, n: [
                OC(x, g, -1, "", t, [(0, 1)]),
                OC(x, g, -1, m, t, [(0, 1)]),
                OC(x, g, n, m, t, [(0, 1)]),
                OC(x, g, n + 1, m, t, [(0, 1)]),
                OC(x, g, n, "x", t, [(0, 1)]),
                OC(x, g, n, m, t, [(0, 1)], inst="zz"),
            ]
        )(*full(x, g))
    )(x.g(), x.topic()),
)
for v in (2, 7, 8, 9):
    P(
        S,
        "commit to an unknown group v%d" % v,
        lambda x, v=v: (
            lambda t: [
                OC(x, x.g(), 1, "x", t, [(0, 1)], v),
                OC(x, x.g(), -1, "x", t, [(0, 1)], v),
                OC(x, x.g(), 0, "", t, [(0, 1)], v),
                OC(x, x.g(), -2, "", t, [(0, 1)], v),
            ]
        )(x.topic()),
    )


def emptyid(x):
    """the only probe that touches the group with the empty name"""
    t = x.topic()
    x.rq("DeleteGroups", 1, {"groups": [""]})
    D = lambda: [x.rq("DescribeGroups", v, {"groups": [""]}) for v in (0, 5, 6)]
    o = [D(), OF(x, "", None), OF(x, "", [(t, [0])])] + [OC(x, "", -1, "", t, [(0, 1)], v) for v in (2, 7, 9)]
    return o + [
        OF(x, "", None),
        D(),
        x.rq("OffsetFetch", 8, {"groups": [G("", None)]}),
        x.rq("DeleteGroups", 1, {"groups": [""]}),
        OF(x, "", None),
    ]


P(S, "group with an empty name", emptyid)
P(S, "commit unknown topic", lambda x: OC(x, x.g(), -1, "", x.name("n"), [(0, 1)]))
P(S, "commit unknown partitions", lambda x: OC(x, x.g(), -1, "", x.topic(), [(0, 1), (99, 1), (-1, 1)]))
P(S, "commit bad topic", lambda x: OC(x, x.g(), -1, "", "a b", [(0, 1)]))
P(S, "commit no topics", lambda x: OC(x, x.g(), -1, "", None, []))
for n, k in (("4096", "x" * 4096), ("4097", "x" * 4097), ("null", None), ("text", "héllo")):
    P(
        S,
        "metadata " + n,
        lambda x, k=k: (lambda g, t: [OC(x, g, -1, "", t, [(0, 1)], meta=k), OF(x, g, [(t, [0])])])(x.g(), x.topic()),
    )
for o in (-1, -5, 0, 2**62):
    P(
        S,
        "commit offset %d" % o,
        lambda x, o=o: (lambda g, t: [OC(x, g, -1, "", t, [(0, o)]), OF(x, g, [(t, [0])])])(x.g(), x.topic()),
    )
P(
    S,
    "commit partition twice",
    lambda x: (lambda g, t: [OC(x, g, -1, "", t, [(0, 7), (0, 8)]), OF(x, g, [(t, [0])])])(x.g(), x.topic()),
)
P(
    S,
    "commit leader epoch",
    lambda x: (
        lambda g, t: [
            x.rq(
                "OffsetCommit",
                7,
                {"group": g, "topics": [{"name": t, "parts": [{"p": 0, "off": 3, "epoch": 4, "meta": "m"}]}]},
            ),
            OF(x, g, [(t, [0])]),
        ]
    )(x.g(), x.topic()),
)
P(
    S,
    "commit retention v3",
    lambda x: (lambda g, t: [OC(x, g, -1, "", t, [(0, 3)], 3, retention=3600000), OF(x, g, [(t, [0])])])(
        x.g(), x.topic()
    ),
)
P(
    S,
    "commit twice keeps the last",
    lambda x: (lambda g, t: [OC(x, g, -1, "", t, [(0, 9)]), OC(x, g, -1, "", t, [(0, 4), (1, 2)]), OF(x, g, None)])(
        x.g(), x.topic(2)
    ),
)
for v in range(1, 8):
    P(
        S,
        "fetch v%d" % v,
        lambda x, v=v: (
            lambda g, t: (OC(x, g, -1, "", t, [(0, 5)]), OF(x, g, [(t, [0, 1, 99]), (x.name("n"), [0])], v))[1]
        )(x.g(), x.topic(2)),
    )
for v in (2, 5, 7):
    P(
        S,
        "fetch all v%d" % v,
        lambda x, v=v: (
            lambda g, t: (OC(x, g, -1, "", t, [(0, 5), (1, 6)]), OF(x, g, None, v), OF(x, x.g(), None, v))[1:]
        )(x.g(), x.topic(2)),
    )
P(S, "fetch v1 null topics", lambda x: OF(x, x.g(), None, 1))
P(S, "fetch unknown group", lambda x: OF(x, x.g(), [(x.topic(), [0])]))
P(S, "fetch empty list", lambda x: OF(x, x.g(), []))
P(
    S,
    "fetch require_stable",
    lambda x: (lambda g, t: (OC(x, g, -1, "", t, [(0, 5)]), OF(x, g, [(t, [0])], 7, stable=True))[1])(x.g(), x.topic()),
)
P(
    S,
    "fetch partition twice",
    lambda x: (lambda g, t: (OC(x, g, -1, "", t, [(0, 5)]), OF(x, g, [(t, [0, 0]), (t, [0])]))[1])(x.g(), x.topic()),
)


def G(g, ts, v=8, **k):
    return dict(
        {"group": g, "topics": None if ts is None else [{("id" if v >= 10 else "name"): n, "parts": p} for n, p in ts]},
        **k
    )


def ofm(x):
    g, t = x.g(), x.topic(2)
    OC(x, g, -1, "", t, [(0, 5)])
    return x.rq("OffsetFetch", 8, {"groups": [G(g, None), G(x.g(), None), G(g, [(t, [1, 0])]), G(x.g(), [(t, [0])])]})


P(S, "fetch v8 group order", ofm)
P(S, "fetch v8 none", lambda x: x.rq("OffsetFetch", 8, {"groups": []}))
P(
    S,
    "fetch v9 member",
    lambda x: (
        lambda g, t: (
            lambda m, n: (
                OC(x, g, n, m, t, [(0, 1)]),
                x.rq("OffsetFetch", 9, {"groups": [G(g, None, member="x", epoch=3)]}),
                x.rq("OffsetFetch", 9, {"groups": [G(g, None, member=m, epoch=n)]}),
            )[1:]
        )(*full(x, g))
    )(x.g(), x.topic()),
)
P(
    S,
    "fetch v10 ids",
    lambda x: (
        lambda g, t: (
            OC(x, g, -1, "", t, [(0, 5)]),
            x.rq("OffsetFetch", 10, {"groups": [G(g, [(topic_id(x.c, t), [0]), (Z1, [0])], 10)]}),
            x.rq("OffsetFetch", 10, {"groups": [G(g, None, 10)]}),
        )[1:]
    )(x.g(), x.topic()),
)


def OD(x, g, t, ps):
    return x.rq("OffsetDelete", 0, {"group": g, "topics": [{"name": t, "parts": [{"p": p} for p in ps]}]})


P(
    S,
    "OffsetDelete",
    lambda x: (
        lambda g, t: (
            OC(x, g, -1, "", t, [(0, 5), (1, 6)]),
            OD(x, x.g(), t, [0]),
            OD(x, "", t, [0]),
            OD(x, g, t, [0, 99]),
            OD(x, g, x.name("n"), [0]),
            OF(x, g, None),
        )[1:]
    )(x.g(), x.topic(2)),
)


def subm(t):
    return struct.pack(">hih", 1, 1, len(t)) + t.encode() + struct.pack(">ii", -1, 0)


P(
    S,
    "OffsetDelete subscribed",
    lambda x: (
        lambda g, t, u: (lambda m, n: (OC(x, g, n, m, t, [(0, 1)]), OD(x, g, t, [0]), OD(x, g, u, [0]))[1:])(
            *full(x, g, meta=subm(t))
        )
    )(x.g(), x.topic(), x.topic()),
)
P(
    S,
    "OffsetDelete metadata not parsable",
    lambda x: (
        lambda g, t: (lambda m, n: (OC(x, g, n, m, t, [(0, 1)]), OD(x, g, t, [0]))[1])(*full(x, g, meta=b"\0\1"))
    )(x.g(), x.topic()),
)
P(
    S,
    "group made by a commit",
    lambda x: (
        lambda g: (OC(x, g, -1, "", x.topic(), [(0, 1)]), LG(x, 4, g), x.rq("DescribeGroups", 5, {"groups": [g]}))[1:]
    )(x.g()),
)
P(
    S,
    "after the topic is deleted",
    lambda x: (lambda g, t: (OC(x, g, -1, "", t, [(0, 1)]), DT(x, [t]), time.sleep(0.5), OF(x, g, [(t, [0])]))[3])(
        x.g(), x.topic()
    ),
)
P(
    S,
    "after DeleteGroups",
    lambda x: (
        lambda g, t: (OC(x, g, -1, "", t, [(0, 1)]), x.rq("DeleteGroups", 1, {"groups": [g]}), OF(x, g, None))[2]
    )(x.g(), x.topic()),
)
P(
    S,
    "commit far beyond the log",
    lambda x: (lambda g, t: [OC(x, g, -1, "", t, [(0, 10**12)]), OF(x, g, [(t, [0])])])(x.g(), x.topic()),
)
P(
    S,
    "leave and read",
    lambda x: (
        lambda g, t: (lambda m, n: (OC(x, g, n, m, t, [(0, 1)]), L(x, g, [(m, None)]), OF(x, g, None))[2])(*full(x, g))
    )(x.g(), x.topic()),
)

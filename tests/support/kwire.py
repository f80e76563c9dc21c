"""Kafka wire protocol for judging a server from outside: message layouts, codec, socket client, record batches, compression.

It has its own description of every message, so that no mistake of the server's codec can hide behind the same mistake here.
Layout notation, one line per message, fields in wire order:  name:type[@versions][=default][#tag]
  types  b bool, y int8, h int16, i int32, q int64, u uuid, s string, B bytes; *t array of t; [..] array of structs;
         (..) struct, (?..) nullable struct.  versions: 3+, 0-7, 5.  Any string, bytes or array may be null (None) both ways.
"""

import gzip, os, re, socket, struct, time, zlib

import zstandard  # this and the next from tests/requirements.txt
from crc32c import crc32c

LAYOUT = """
0 Produce 9
> txid:s@3+=null acks:h timeout:i topics:[name:s@0-12 id:u@13+ parts:[p:i rec:B]]
< topics:[name:s@0-12 id:u@13+ parts:[p:i err:h base:q lat:q lso:q@5+ recerr:[i:i msg:s]@8+ msg:s@8+ leader:(id:i epoch:i)@10+#0]] throttle:i nodes:[id:i host:s port:i rack:s]@10+#0
1 Fetch 12
> cluster:s@12+#0 replica:i@0-14=-1 rstate:(id:i epoch:q)@15+#1 wait:i min:i max:i=1048576 iso:y sid:i@7+ sep:i@7+=-1 topics:[name:s@0-12 id:u@13+ parts:[p:i cle:i@9+=-1 off:q lfe:i@12+=-1 lso:q@5+=-1 max:i=1048576]] forget:[name:s@7-12 id:u@13+ parts:*i]@7+ rack:s@11+
< throttle:i err:h@7+ sid:i@7+ topics:[name:s@0-12 id:u@13+ parts:[p:i err:h hw:q lstable:q lso:q@5+ diverging:(epoch:i end:q)@12+#0 leader:(id:i epoch:i)@12+#1 snap:(end:q epoch:i)@12+#2 aborted:[pid:q first:q] prr:i@11+ rec:B]] nodes:[id:i host:s port:i rack:s]@16+#0
2 ListOffsets 6
> replica:i=-1 iso:y@2+ topics:[name:s parts:[p:i cle:i@4+=-1 ts:q]] timeout:i@10+
< throttle:i@2+ topics:[name:s parts:[p:i err:h ts:q off:q epoch:i@4+]]
3 Metadata 9
> topics:[id:u@10+ name:s] auto:b@4+ cops:b@8-10 tops:b@8+
< throttle:i@3+ brokers:[id:i host:s port:i rack:s@1+] cluster:s@2+ controller:i@1+ topics:[err:h name:s id:u@10+ internal:b@1+ parts:[err:h p:i leader:i epoch:i@7+ replicas:*i isr:*i offline:*i@5+] ops:i@8+] cops:i@8-10 err:h@13+
8 OffsetCommit 8
> group:s gen:i=-1 member:s inst:s@7+=null retention:q@2-4=-1 topics:[name:s@0-9 id:u@10+ parts:[p:i off:q epoch:i@6+=-1 meta:s]]
< throttle:i@3+ topics:[name:s@0-9 id:u@10+ parts:[p:i err:h]]
9 OffsetFetch 6
> group:s@0-7 topics:[name:s parts:*i]@0-7 groups:[group:s member:s@9+=null epoch:i@9+=-1 topics:[name:s@8-9 id:u@10+ parts:*i]]@8+ stable:b@7+
< throttle:i@3+ topics:[name:s parts:[p:i off:q epoch:i@5+ meta:s err:h]]@0-7 err:h@2-7 groups:[group:s topics:[name:s@8-9 id:u@10+ parts:[p:i off:q epoch:i meta:s err:h]] err:h]@8+
10 FindCoordinator 3
> key:s@0-3 type:y@1+ keys:*s@4+
< throttle:i@1+ err:h@0-3 msg:s@1-3 node:i@0-3 host:s@0-3 port:i@0-3 coords:[key:s node:i host:s port:i err:h msg:s]@4+
11 JoinGroup 6
> group:s session:i=10000 rebalance:i@1+=10000 member:s inst:s@5+=null ptype:s protos:[name:s meta:B] reason:s@8+=null
< throttle:i@2+ err:h gen:i ptype:s@7+ proto:s leader:s skip:b@9+ member:s members:[member:s inst:s@5+ meta:B]
12 Heartbeat 4
> group:s gen:i member:s inst:s@3+=null
< throttle:i@1+ err:h
13 LeaveGroup 4
> group:s member:s@0-2 members:[member:s inst:s=null reason:s@5+=null]@3+
< throttle:i@1+ err:h members:[member:s inst:s err:h]@3+
14 SyncGroup 4
> group:s gen:i member:s inst:s@3+=null ptype:s@5+=null proto:s@5+=null assigns:[member:s data:B]
< throttle:i@1+ err:h ptype:s@5+ proto:s@5+ data:B
15 DescribeGroups 5
> groups:*s ops:b@3+
< throttle:i@1+ groups:[err:h msg:s@6+ group:s state:s ptype:s pdata:s members:[member:s inst:s@4+ client:s host:s meta:B assign:B] ops:i@3+]
16 ListGroups 3
> states:*s@4+ types:*s@5+
< throttle:i@1+ err:h groups:[group:s ptype:s state:s@4+ type:s@5+]
17 SaslHandshake none
> mech:s
< err:h mechs:*s
18 ApiVersions 3
> name:s@3+ ver:s@3+ cluster:s@5+=null node:i@5+=-1
< err:h keys:[key:h min:h max:h] throttle:i@1+ supported:[name:s min:h max:h]@3+#0 fepoch:q@3+#1 finalized:[name:s max:h min:h]@3+#2 zk:b@3+#3
19 CreateTopics 5
> topics:[name:s n:i rf:h assigns:[p:i brokers:*i] configs:[name:s value:s]] timeout:i=10000 validate:b
< throttle:i topics:[name:s id:u@7+ err:h msg:s cerr:h@5+#0 n:i@5+ rf:h@5+ configs:[name:s value:s ro:b source:y sens:b]@5+]
20 DeleteTopics 4
> topics:[name:s id:u]@6+ names:*s@0-5 timeout:i=10000
< throttle:i@1+ topics:[name:s id:u@6+ err:h msg:s@5+]
21 DeleteRecords 2
> topics:[name:s parts:[p:i off:q]] timeout:i=5000
< throttle:i topics:[name:s parts:[p:i low:q err:h]]
22 InitProducerId 2
> txid:s=null timeout:i=60000 pid:q@3+=-1 epoch:h@3+=-1
< throttle:i err:h pid:q epoch:h
23 OffsetForLeaderEpoch 4
> replica:i@3+=-1 topics:[name:s parts:[p:i cle:i=-1 epoch:i]]
< throttle:i topics:[name:s parts:[err:h p:i epoch:i end:q]]
32 DescribeConfigs 4
> res:[type:y name:s keys:*s=null] syn:b doc:b@3+
< throttle:i res:[err:h msg:s type:y name:s configs:[name:s value:s ro:b source:y sens:b syn:[name:s value:s source:y] ctype:y@3+ doc:s@3+]]
33 AlterConfigs 2
> res:[type:y name:s configs:[name:s value:s]] validate:b
< throttle:i res:[err:h msg:s type:y name:s]
36 SaslAuthenticate 2
> data:B
< err:h msg:s data:B life:q@1+
37 CreatePartitions 2
> topics:[name:s count:i assigns:[brokers:*i]=null] timeout:i=10000 validate:b
< throttle:i topics:[name:s err:h msg:s]
42 DeleteGroups 2
> groups:*s
< throttle:i groups:[group:s err:h msg:s@3+]
44 IncrementalAlterConfigs 1
> res:[type:y name:s configs:[name:s op:y value:s]] validate:b
< throttle:i res:[err:h msg:s type:y name:s]
47 OffsetDelete none
> group:s topics:[name:s parts:[p:i]]
< err:h throttle:i topics:[name:s parts:[p:i err:h]]
60 DescribeCluster 0
> cops:b etype:y@1+=1 fenced:b@2+
< throttle:i err:h msg:s etype:y@1+ cluster:s controller:i brokers:[id:i host:s port:i rack:s fenced:b@2+] cops:i
68 ConsumerGroupHeartbeat 0
> group:s member:s epoch:i inst:s=null rack:s=null rebalance:i=-1 topics:*s=null regex:s@1+=null assignor:s=null owned:[id:u parts:*i]=null
< throttle:i err:h msg:s member:s epoch:i interval:i assigned:(?parts:[id:u parts:*i])
69 ConsumerGroupDescribe 0
> groups:*s ops:b
< throttle:i groups:[err:h msg:s group:s state:s]
75 DescribeTopicPartitions 0
> topics:[name:s] limit:i=2000 cursor:(?topic:s p:i)=null
< throttle:i topics:[err:h name:s id:u internal:b parts:[err:h p:i leader:i epoch:i replicas:*i isr:*i elr:*i lastelr:*i offline:*i] ops:i] cursor:(?topic:s p:i)
"""
# Produce answers carry log_append_time from v2 on and throttle from v1 on; only v3+ is ever sent here.


def _rng(s):
    if s is None:
        return (0, 999)
    if s.endswith("+"):
        return (int(s[:-1]), 999)
    a, _, b = s.partition("-")
    return (int(a), int(b or a))


class F:
    __slots__ = ("name", "kind", "t", "subs", "lo", "hi", "default", "tag")


def _parse(toks):
    out = []
    while toks:
        t = toks.pop(0)
        if t[0] in "])":
            toks.insert(0, t)
            break
        f = F()
        f.subs = None
        f.lo, f.hi = 0, 999
        f.default = None
        f.tag = None
        f.name, ty = t.split(":", 1)
        if ty in ("[", "(", "(?"):
            f.kind = {"[": "A", "(": "S", "(?": "N"}[ty]
            f.t = None
            f.subs = _parse(toks)
            ty = toks.pop(0)[1:]
        elif ty[0] == "*":
            f.kind = "a"
            f.t = ty[1]
            ty = ty[2:]
        else:
            f.kind = "p"
            f.t = ty[0]
            ty = ty[1:]
        for m in re.finditer(r"@([\d+-]+)|=(-?\w+)|#(\d+)", ty):
            if m[1]:
                f.lo, f.hi = _rng(m[1])
            if m[2] is not None:
                f.default = m[2]
            if m[3]:
                f.tag = int(m[3])
        out.append(f)
    return out


def _lex(s):
    # "name:[" and "name:(" open, "]..." and ")..." close (with modifiers glued on)
    s = re.sub(r"(\w+:)(\[|\(\??)", r" \1\2 ", s)
    s = re.sub(r"([\])])", r" \1", s)
    return s.split()


class Api:
    pass


APIS = {}


def _load():
    a = None
    for l in LAYOUT.strip().split("\n"):
        if l[0] == ">":
            a.req = _parse(_lex(l[1:]))
        elif l[0] == "<":
            a.resp = _parse(_lex(l[1:]))
        else:
            k, n, fl = l.split()
            a = Api()
            a.key = int(k)
            a.name = n
            a.flex = 999 if fl == "none" else int(fl)
            APIS[n] = a
            APIS[a.key] = a


_load()


def uvar(n):
    n &= 0xFFFFFFFF
    o = bytearray()
    while n > 127:
        o.append(n & 127 | 128)
        n >>= 7
    o.append(n)
    return bytes(o)


def svar(n):
    n = ((n << 1) ^ (n >> 63)) & 0xFFFFFFFFFFFFFFFF
    o = bytearray()
    while n > 127:
        o.append(n & 127 | 128)
        n >>= 7
    o.append(n)
    return bytes(o)


def rsvar(b, p):
    r = k = 0
    while 1:
        if p >= len(b):
            raise ValueError("varint past the end")
        c = b[p]
        p += 1
        r |= (c & 127) << k
        k += 7
        if c < 128:
            break
        if k > 63:
            raise ValueError("varint too long")
    return (r >> 1) ^ -(r & 1), p


NUM = {"y": ">b", "h": ">h", "i": ">i", "q": ">q"}
ZERO = "00" * 16


def _dflt(f):
    if f.default == "null":
        return None
    if f.kind in "Aa":
        return []
    if f.kind in "SN":
        return {} if f.kind == "S" else None
    if f.t in NUM:
        return int(f.default or 0)
    return {"b": False, "u": ZERO, "s": "", "B": b""}[f.t]


def _ln(n, w, fl):
    return uvar(n + 1) if fl else struct.pack(">h" if w == 2 else ">i", n)


def _prim(t, x, fl):
    if t in NUM:
        return struct.pack(NUM[t], x)
    if t == "b":
        return b"\1" if x else b"\0"
    if t == "u":
        return bytes.fromhex(x)
    if x is None:
        return _ln(-1, 2 if t == "s" else 4, fl)
    b = x.encode() if isinstance(x, str) else x
    return _ln(len(b), 2 if t == "s" else 4, fl) + b


def _field(f, x, v, fl):
    if f.kind == "p":
        return _prim(f.t, x, fl)
    if f.kind == "S":
        return _struct(f.subs, x, v, fl)
    if f.kind == "N":
        return b"\xff" if x is None else b"\1" + _struct(f.subs, x, v, fl)
    if x is None:
        return _ln(-1, 4, fl)
    return _ln(len(x), 4, fl) + b"".join(_prim(f.t, y, fl) if f.kind == "a" else _struct(f.subs, y, v, fl) for y in x)


def _struct(fs, d, v, fl):
    o = []
    tags = []
    names = {f.name for f in fs}
    for k in d:
        if k not in names and k != "_tags":
            raise KeyError("no field " + k)
    for f in fs:
        if not f.lo <= v <= f.hi:
            continue
        x = d[f.name] if f.name in d else _dflt(f)
        if f.tag is not None:
            if f.name in d:
                tags.append((f.tag, _field(f, x, v, fl)))
        else:
            o.append(_field(f, x, v, fl))
    if fl:
        tags += d.get("_tags", [])
        o.append(uvar(len(tags)) + b"".join(uvar(t) + uvar(len(b)) + b for t, b in tags))
    return b"".join(o)


def encode(api, v, d):
    a = APIS[api]
    return _struct(a.req, d, v, v >= a.flex)


class Rd:
    def __init__(s, b):
        s.b = b
        s.p = 0

    def take(s, n):
        if n < 0 or s.p + n > len(s.b):
            raise ValueError("answer too short")
        r = s.b[s.p : s.p + n]
        s.p += n
        return r

    def uv(s):
        r = k = 0
        while 1:
            c = s.take(1)[0]
            r |= (c & 127) << k
            k += 7
            if c < 128:
                return r

    def ln(s, w, fl):
        return s.uv() - 1 if fl else struct.unpack(">h" if w == 2 else ">i", s.take(w))[0]

    def prim(s, t, fl):
        if t in NUM:
            return struct.unpack(NUM[t], s.take(struct.calcsize(NUM[t])))[0]
        if t == "b":
            return s.take(1) != b"\0"
        if t == "u":
            return s.take(16).hex()
        n = s.ln(2 if t == "s" else 4, fl)
        if n < 0:
            return None
        b = s.take(n)
        return b.decode("utf8", "replace") if t == "s" else b

    def field(s, f, v, fl):
        if f.kind == "p":
            return s.prim(f.t, fl)
        if f.kind == "S":
            return s.struct(f.subs, v, fl)
        if f.kind == "N":
            return None if s.take(1) == b"\xff" else s.struct(f.subs, v, fl)
        n = s.ln(4, fl)
        if n < 0:
            return None
        if n > len(s.b):
            raise ValueError("array count %d" % n)
        return [s.prim(f.t, fl) if f.kind == "a" else s.struct(f.subs, v, fl) for _ in range(n)]

    def struct(s, fs, v, fl):
        d = {}
        tg = {}
        for f in fs:
            if f.lo <= v <= f.hi:
                if f.tag is not None:
                    tg[f.tag] = f
                else:
                    d[f.name] = s.field(f, v, fl)
        if fl:
            last = -1
            for _ in range(s.uv()):
                t = s.uv()
                n = s.uv()
                q = s.p
                if t <= last:
                    raise ValueError("tags not ascending")
                last = t
                if t in tg:
                    d["~" + tg[t].name] = s.field(tg[t], v, fl)
                else:
                    d["~tag%d" % t] = s.b[q : q + n].hex()
                s.p = q + n
        return d


def decode(api, v, b, req=False):
    a = APIS[api]
    r = Rd(b)
    d = r.struct(a.req if req else a.resp, v, v >= a.flex)
    if r.p != len(b):
        d["_TRAILING"] = b[r.p :].hex()
    return d


# ------------------------------------------------------------------ client
CLOSED = "closed"
SILENT = "no answer"


class Conn:
    """One connection. rq() gives a dict, or CLOSED / SILENT / 'bad answer: ...'"""

    def __init__(s, boot, cid="probes", timeout=6.0):
        h, _, p = boot.rpartition(":")
        s.addr = (h or "127.0.0.1", int(p))
        s.limit = timeout
        s.s = socket.create_connection(s.addr, 5)
        s.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        s.n = 0
        s.cid = cid
        s.buf = b""
        s.pend = []
        s.last = b""
        s.got = 0

    def close(s):
        try:
            s.s.close()
        except OSError:
            pass

    def read(s, n, end):
        while len(s.buf) < n:
            left = end - time.monotonic()
            if left <= 0:
                return SILENT
            s.s.settimeout(left)
            try:
                c = s.s.recv(262144)
            except socket.timeout:
                return SILENT
            except OSError:
                return CLOSED
            if not c:
                return CLOSED
            s.got += len(c)
            s.buf += c
        r = s.buf[:n]
        s.buf = s.buf[n:]
        return r

    def frame(s, t=None):
        end = time.monotonic() + (s.limit if t is None else t)
        h = s.read(4, end)
        if isinstance(h, str):
            return h
        n = struct.unpack(">i", h)[0]
        if n < 0 or n > 1 << 30:
            return "bad answer: frame length %d" % n
        return s.read(n, end)

    def header(s, key, v, flex, cid=0):
        s.n += 1
        c = s.cid if cid == 0 else cid
        return (
            struct.pack(">hhi", key, v, s.n)
            + (struct.pack(">h", -1) if c is None else struct.pack(">h", len(c)) + c.encode())
            + (b"\0" if flex else b"")
        )

    def send(s, api, v, body=None, flex=None):
        a = APIS[api]
        b = body if isinstance(body, bytes) else encode(api, v, body or {})
        f = s.header(a.key, v, v >= a.flex if flex is None else flex) + b
        s.pend.append((a.name, v, s.n))
        s.raw(struct.pack(">i", len(f)) + f)

    def raw(s, b):
        if isinstance(b, str):
            b = bytes.fromhex(b.replace(" ", ""))
        s.s.settimeout(s.limit)
        try:
            s.s.sendall(b)
        except OSError:
            pass

    def recv(s, t=None):
        f = s.frame(t)
        if isinstance(f, str):
            return f
        s.last = f
        if not s.pend:
            return "bad answer: nothing was asked"
        api, v, n = s.pend.pop(0)
        try:
            c = struct.unpack(">i", f[:4])[0]
            if c != n:
                return "bad answer: correlation id %d for %d" % (c, n)
            p = f[4:]
            if api != "ApiVersions" and v >= APIS[api].flex:
                if p[:1] != b"\0":
                    return "bad answer: header tags %s" % p[:1].hex()
                p = p[1:]
            if api == "ApiVersions" and p[:2] == b"\0\x23":
                v = 0
            d = decode(api, v, p)
            if "_TRAILING" in d:
                return "bad answer: %d bytes too many" % (len(d["_TRAILING"]) // 2)
            return d
        except (ValueError, struct.error) as e:
            return "bad answer: %s" % e

    def rq(s, api, v, body=None, t=None, **k):
        s.send(api, v, body, **k)
        return s.recv(t)

    def eof(s, t=None):
        """'' = closed without a byte, CLOSED+n = closed after n bytes, SILENT = still open"""
        end = time.monotonic() + (s.limit if t is None else t)
        while 1:
            r = s.read(len(s.buf) + 1, end)
            if r == SILENT:
                return SILENT if not (len(s.buf)) else "answered %s" % s.buf[:24].hex()
            if r == CLOSED:
                return "" if not s.buf else "answered %s, closed" % s.buf[:24].hex()
            s.buf = r

    def alive(s, t=3):
        s.pend = []
        r = s.rq("ApiVersions", 0, {}, t=t)
        return "open" if isinstance(r, dict) and r.get("err") == 0 else "closed" if r == CLOSED else "stuck"


# ------------------------------------------------------------------ record batches
def record(off, ts, key, val, hdrs=(), attr=0):
    vb = lambda x: svar(-1) if x is None else svar(len(x)) + x
    b = (
        bytes([attr])
        + svar(ts)
        + svar(off)
        + vb(key)
        + vb(val)
        + svar(len(hdrs))
        + b"".join(vb(k) + vb(v) for k, v in hdrs)
    )
    return svar(len(b)) + b


NOW = int(time.time() * 1000)


def batch(
    recs=None,
    n=1,
    ts=None,
    deltas=None,
    attr=0,
    pid=-1,
    epoch=-1,
    seq=-1,
    base=0,
    lod=None,
    maxts=None,
    magic=2,
    body=None,
    cnt=None,
    ple=-1,
    badcrc=False,
    length=None,
    codec=None,
):
    """recs: (key, value[, headers]) list; codec: name of a compressor, sets attribute bits"""
    ts = NOW if ts is None else ts
    if recs is None:
        recs = [(b"k%d" % i, b"v%d" % i) for i in range(n)]
    deltas = deltas or [0] * len(recs)
    if body is None:
        body = b"".join(record(i, deltas[i], r[0], r[1], r[2] if len(r) > 2 else ()) for i, r in enumerate(recs))
    if codec:
        body = COMPRESS[codec](body)
        attr |= CODEC[codec]
    cnt = len(recs) if cnt is None else cnt
    lod = cnt - 1 if lod is None else lod
    maxts = ts + max(deltas or [0]) if maxts is None else maxts
    a = struct.pack(">hiqqqhii", attr, lod, ts, maxts, pid, epoch, seq, cnt) + body
    c = crc32c(a) ^ (1 if badcrc else 0)
    return struct.pack(">qiibI", base, 9 + len(a) if length is None else length, ple, magic, c) + a


def message(magic, key, val, ts=None, off=0, attr=0):
    """old message set entry"""
    b4 = lambda x: struct.pack(">i", -1) if x is None else struct.pack(">i", len(x)) + x
    b = (
        struct.pack(">bb", magic, attr)
        + (struct.pack(">q", NOW if ts is None else ts) if magic == 1 else b"")
        + b4(key)
        + b4(val)
    )
    m = struct.pack(">I", zlib.crc32(b)) + b
    return struct.pack(">qi", off, len(m)) + m


class Rec:
    def __init__(s, off, ts, key, val, hdrs):
        s.off = off
        s.ts = ts
        s.key = key
        s.val = val
        s.hdrs = hdrs


def batches(b, strict=True):
    """Strict reader of a records field; a cut last batch is left out. Each batch: dict with recs; raises ValueError on anything wrong"""
    out = []
    p = 0
    while p < len(b):
        if p + 17 > len(b):
            break
        base, L = struct.unpack_from(">qi", b, p)
        if b[p + 16] != 2:
            raise ValueError("magic %d" % b[p + 16])
        if p + 12 + L > len(b):
            break
        if L < 49:
            raise ValueError("batch length %d" % L)
        ple, mg, crc, at, lod, bt, mt, pid, ep, seq, cnt = struct.unpack_from(">ibIhiqqqhii", b, p + 12)
        if crc32c(b[p + 21 : p + 12 + L]) != crc:
            raise ValueError("CRC of batch at %d" % base)
        body = b[p + 61 : p + 12 + L]
        if at & 7 > 4:
            raise ValueError("codec bits %d" % (at & 7))
        rb = DECOMPRESS[at & 7](body) if at & 7 else body
        rs = []
        q = 0
        for i in range(cnt):
            n, q = rsvar(rb, q)
            e = q + n
            if n < 0 or e > len(rb):
                raise ValueError("record %d of batch %d goes past the end" % (i, base))
            q += 1
            td, q = rsvar(rb, q)
            od, q = rsvar(rb, q)
            kl, q = rsvar(rb, q)
            k = None if kl < 0 else rb[q : q + kl]
            q += max(kl, 0)
            vl, q = rsvar(rb, q)
            v = None if vl < 0 else rb[q : q + vl]
            q += max(vl, 0)
            hc, q = rsvar(rb, q)
            hs = []
            if hc < 0:
                raise ValueError("header count")
            for _ in range(hc):
                a, q = rsvar(rb, q)
                hk = rb[q : q + a]
                q += a
                a, q = rsvar(rb, q)
                hv = None if a < 0 else rb[q : q + a]
                q += max(a, 0)
                hs.append((hk, hv))
            if q != e:
                raise ValueError("record %d of batch %d: %d bytes of %d" % (i, base, n - e + q, n))
            if strict and not 0 <= od <= lod:
                raise ValueError("record offset delta %d of %d" % (od, lod))
            rs.append(Rec(base + od, mt if at & 8 else bt + td, k, v, hs))
        if q != len(rb):
            raise ValueError("%d bytes behind the last record of batch %d" % (len(rb) - q, base))
        out.append(
            dict(
                base=base,
                ple=ple,
                attr=at,
                lod=lod,
                bts=bt,
                mts=mt,
                pid=pid,
                epoch=ep,
                seq=seq,
                cnt=cnt,
                recs=rs,
                size=12 + L,
            )
        )
        p += 12 + L
    return out


# ------------------------------------------------------------------ compression
CODEC = {"none": 0, "gzip": 1, "snappy": 2, "xerial": 2, "lz4": 3, "zstd": 4}


def _matches(b, maxdist, tail):
    """greedy matcher: yields (literal start, literal end, distance, length); the last one has length 0"""
    seen = {}
    i = a = 0
    n = len(b) - tail
    while i < n:
        k = b[i : i + 4]
        j = seen.get(k)
        seen[k] = i
        if j is not None and i - j <= maxdist and len(k) == 4:
            m = 4
            while i + m < n and b[j + m] == b[i + m]:
                m += 1
            yield a, i, i - j, m
            i += m
            a = i
        else:
            i += 1
    yield a, len(b), 0, 0


def snappy(b):
    o = bytearray(uvar(len(b)))
    for a, e, d, m in _matches(b, 65535, 0):
        while a < e:
            n = min(e - a, 60)
            o.append((n - 1) << 2)
            o += b[a : a + n]
            a += n
        while m:
            n = min(m, 64)
            o.append((n - 1) << 2 | 2)
            o += struct.pack("<H", d)
            m -= n
    return bytes(o)


def unsnappy_raw(b):
    p = n = k = 0
    while 1:
        c = b[p]
        p += 1
        n |= (c & 127) << k
        k += 7
        if c < 128:
            break
    o = bytearray()
    while p < len(b):
        t = b[p]
        p += 1
        k = t & 3
        if k == 0:
            l = t >> 2
            if l >= 60:
                w = l - 59
                l = int.from_bytes(b[p : p + w], "little")
                p += w
            l += 1
            if p + l > len(b):
                raise ValueError("snappy literal past the end")
            o += b[p : p + l]
            p += l
            continue
        if k == 1:
            l = (t >> 2 & 7) + 4
            d = (t >> 5) << 8 | b[p]
            p += 1
        elif k == 2:
            l = (t >> 2) + 1
            d = b[p] | b[p + 1] << 8
            p += 2
        else:
            l = (t >> 2) + 1
            d = int.from_bytes(b[p : p + 4], "little")
            p += 4
        if not 0 < d <= len(o):
            raise ValueError("snappy distance")
        for _ in range(l):
            o.append(o[-d])
    if len(o) != n:
        raise ValueError("snappy length %d, said %d" % (len(o), n))
    return bytes(o)


XERIAL = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)


def xerial(b, step=32768):
    o = XERIAL
    for i in range(0, len(b), step):
        c = snappy(b[i : i + step])
        o += struct.pack(">i", len(c)) + c
    return o


def unsnappy(b):
    if b[:8] != XERIAL[:8]:
        return unsnappy_raw(b)
    p = 16
    o = b""
    while p < len(b):
        (n,) = struct.unpack_from(">i", b, p)
        p += 4
        if n <= 0 or p + n > len(b):
            raise ValueError("snappy block length")
        o += unsnappy_raw(b[p : p + n])
        p += n
    return o


def xxh32(b, seed=0):
    M = 0xFFFFFFFF
    P1, P2, P3, P4, P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    rol = lambda x, r: ((x << r) | (x >> 32 - r)) & M
    n = len(b)
    i = 0
    if n >= 16:
        v = [(seed + P1 + P2) & M, (seed + P2) & M, seed, (seed - P1) & M]
        while i + 16 <= n:
            for k, x in enumerate(struct.unpack_from("<4I", b, i)):
                v[k] = rol((v[k] + x * P2) & M, 13) * P1 & M
            i += 16
        h = (rol(v[0], 1) + rol(v[1], 7) + rol(v[2], 12) + rol(v[3], 18)) & M
    else:
        h = (seed + P5) & M
    h = (h + n) & M
    while i + 4 <= n:
        h = rol((h + struct.unpack_from("<I", b, i)[0] * P3) & M, 17) * P4 & M
        i += 4
    while i < n:
        h = rol((h + b[i] * P5) & M, 11) * P1 & M
        i += 1
    h ^= h >> 15
    h = h * P2 & M
    h ^= h >> 13
    h = h * P3 & M
    return h ^ h >> 16


def lz4_block(b):
    o = bytearray()

    def ext(n):
        while n >= 255:
            o.append(255)
            n -= 255
        o.append(n)

    for a, e, d, m in _matches(b, 65535, 12):
        l = e - a
        o.append(min(l, 15) << 4 | (min(m - 4, 15) if m else 0))
        if l >= 15:
            ext(l - 15)
        o += b[a:e]
        if m:
            o += struct.pack("<H", d)
            if m - 4 >= 15:
                ext(m - 19)
    return bytes(o)


def lz4(b):
    f = bytes([0x60, 0x40])
    o = b"\x04\x22\x4d\x18" + f + bytes([xxh32(f) >> 8 & 255])
    for i in range(0, len(b), 65536):
        c = lz4_block(b[i : i + 65536])
        r = b[i : i + 65536]
        o += struct.pack("<I", len(c)) + c if len(c) < len(r) else struct.pack("<I", len(r) | 1 << 31) + r
    return o + b"\0\0\0\0"


def unlz4(b):
    if b[:4] != b"\x04\x22\x4d\x18":
        raise ValueError("lz4 magic")
    flg = b[4]
    p = 6 + (8 if flg & 8 else 0) + (4 if flg & 1 else 0)
    if flg >> 6 != 1:
        raise ValueError("lz4 version")
    if b[p] != xxh32(b[4:p]) >> 8 & 255:
        raise ValueError("lz4 header checksum")
    p += 1
    o = bytearray()
    while 1:
        (n,) = struct.unpack_from("<I", b, p)
        p += 4
        if n == 0:
            break
        raw = n >> 31
        n &= 0x7FFFFFFF
        c = b[p : p + n]
        p += n
        if len(c) != n:
            raise ValueError("lz4 block cut")
        if flg & 16:
            p += 4
        if raw:
            o += c
            continue
        q = 0
        start = 0 if not flg & 32 else len(o)
        while q < len(c):
            t = c[q]
            q += 1
            l = t >> 4
            if l == 15:
                while 1:
                    x = c[q]
                    q += 1
                    l += x
                    if x < 255:
                        break
            o += c[q : q + l]
            q += l
            if q >= len(c):
                break
            d = c[q] | c[q + 1] << 8
            q += 2
            m = (t & 15) + 4
            if m == 19:
                while 1:
                    x = c[q]
                    q += 1
                    m += x
                    if x < 255:
                        break
            if not 0 < d <= len(o) - start:
                raise ValueError("lz4 distance")
            for _ in range(m):
                o.append(o[-d])
    if flg & 4:
        if struct.unpack_from("<I", b, p)[0] != xxh32(bytes(o)):
            raise ValueError("lz4 content checksum")
        p += 4
    if p != len(b):
        raise ValueError("lz4 trailing bytes")
    return bytes(o)


def zstd_raw(b):
    """valid zstd frame of raw blocks, no library"""
    o = b"\x28\xb5\x2f\xfd" + b"\x00\x58"
    cs = [b[i : i + 131072] for i in range(0, len(b), 131072)] or [b""]
    for i, c in enumerate(cs):
        o += struct.pack("<I", len(c) << 3 | (i == len(cs) - 1))[:3] + c
    return o


def zstd(b):
    return zstandard.ZstdCompressor(level=3).compress(b)


def unzstd(b):
    try:
        return zstandard.ZstdDecompressor().decompressobj().decompress(b)
    except zstandard.ZstdError as e:
        raise ValueError("zstd: %s" % e)


def _safe(f):
    def g(b):
        try:
            return f(b)
        except ValueError:
            raise
        except Exception as e:
            raise ValueError("%s: %r" % (f.__name__, e))

    return g


COMPRESS = {
    "none": lambda b: b,
    "gzip": lambda b: gzip.compress(b, 6),
    "snappy": snappy,
    "xerial": xerial,
    "lz4": lz4,
    "zstd": zstd,
}
DECOMPRESS = {1: _safe(gzip.decompress), 2: _safe(unsnappy), 3: _safe(unlz4), 4: _safe(unzstd)}


# ------------------------------------------------------------------ small helpers
def rnd(p="h"):
    return "%s-%s" % (p, os.urandom(5).hex())


def mktopic(c, name, n=1, cfg=None, v=2):
    """CreateTopics, then wait until every partition answers ListOffsets. Gives the error code (0 = there)"""
    r = c.rq(
        "CreateTopics",
        v,
        {
            "topics": [
                {"name": name, "n": n, "rf": 1, "configs": [{"name": k, "value": x} for k, x in (cfg or {}).items()]}
            ]
        },
        t=20,
    )
    if isinstance(r, str):
        return r
    e = r["topics"][0]["err"]
    if e:
        return e
    for _ in range(200):
        l = c.rq("ListOffsets", 1, {"topics": [{"name": name, "parts": [{"p": i, "ts": -1} for i in range(n)]}]})
        if isinstance(l, dict) and all(p["err"] == 0 for p in l["topics"][0]["parts"]):
            return 0
        time.sleep(0.03)
    return "topic %s never became ready" % name


def produce(c, parts, v=7, acks=-1, t=None, txid=None, timeout=5000):
    """parts: (topic, partition, records) list"""
    ts = {}
    for a, b, r in parts:
        ts.setdefault(a, []).append({"p": b, "rec": r})
    key = "id" if v >= 13 else "name"
    return c.rq(
        "Produce",
        v,
        {"txid": txid, "acks": acks, "timeout": timeout, "topics": [{key: a, "parts": p} for a, p in ts.items()]},
        t=t,
    )


def pparts(r):
    """{(topic, partition): entry} of a Produce, Fetch or ListOffsets answer"""
    return {(t.get("name", t.get("id")), p["p"]): p for t in r["topics"] for p in t["parts"]}


def perr(r, k=None):
    if isinstance(r, str):
        return r
    v = list(pparts(r).values())
    return v[0] if v else {}


def fetch_body(v, parts, wait=500, min=1, max=1 << 22, **k):
    """parts: (topic, partition, offset[, extra dict]) list"""
    ts = {}
    for x in parts:
        ts.setdefault(x[0], []).append(dict({"p": x[1], "off": x[2], "max": 1 << 22}, **(x[3] if len(x) > 3 else {})))
    return dict(
        {
            "wait": wait,
            "min": min,
            "max": max,
            "topics": [{("id" if v >= 13 else "name"): a, "parts": p} for a, p in ts.items()],
        },
        **k
    )


def fetch(c, parts, v=11, t=None, **k):
    return c.rq("Fetch", v, fetch_body(v, parts, **k), t=t)


def fetch_all(c, topic, p=0, off=0, v=11, end=None, t=8):
    """records from off to the log end (or `end`), strict"""
    out = []
    lim = time.monotonic() + t
    while time.monotonic() < lim:
        r = fetch(c, [(topic, p, off)], v, wait=200)
        if isinstance(r, str):
            raise ValueError("Fetch: " + r)
        e = perr(r)
        if e["err"]:
            raise ValueError("Fetch error %d" % e["err"])
        if e["rec"] is None:
            raise ValueError("records null")
        rs = [x for b in batches(e["rec"]) for x in b["recs"] if x.off >= off]
        if not rs:
            if end is None or off >= end:
                return out
            continue
        out += rs
        off = rs[-1].off + 1
        if off >= (e["hw"] if end is None else end):
            return out
    raise ValueError("Fetch stopped at %d" % off)


def list_offset(c, topic, p, ts, v=5, **k):
    r = c.rq("ListOffsets", v, {"topics": [{"name": topic, "parts": [dict({"p": p, "ts": ts}, **k)]}]})
    return r if isinstance(r, str) else r["topics"][0]["parts"][0]


def topic_id(c, name):
    r = c.rq("Metadata", 12, {"topics": [{"name": name}]})
    return r if isinstance(r, str) else r["topics"][0]["id"]

"""A well-formed request body with something in every field, for each API and version that the server lists."""

from kwire import APIS, Conn, batch, encode

TOPIC = "hostile"
UUID = "33" * 16


def topic_key(version, since):
    return {"id": UUID} if version >= since else {"name": TOPIC}


EXAMPLES = {
    "Produce": lambda v: {"acks": 1, "timeout": 1000, "topics": [topic_key(v, 13) | {"parts": [{"p": 0, "rec": batch(n=2)}]}]},
    "Fetch": lambda v: {"wait": 0, "min": 1, "topics": [topic_key(v, 13) | {"parts": [{"p": 0, "off": 0, "max": 1000}]}]},
    "ListOffsets": lambda v: {"topics": [{"name": TOPIC, "parts": [{"p": 0, "ts": -1}]}]},
    "Metadata": lambda v: {"topics": [{"name": TOPIC}], "auto": False},
    "FindCoordinator": lambda v: {"key": "group", "keys": ["group"]} if v < 4 else {"keys": ["group"]},
    "OffsetCommit": lambda v: {"group": "group", "gen": -1, "member": "", "topics": [{"name": TOPIC, "parts": [{"p": 0, "off": 1, "meta": "m"}]}]},
    "OffsetFetch": lambda v: (
        {"groups": [{"group": "group", "topics": [{"name": TOPIC, "parts": [0]}]}]} if v >= 8 else {"group": "group", "topics": [{"name": TOPIC, "parts": [0]}]}
    ),
    "JoinGroup": lambda v: {"group": "group", "session": 10000, "rebalance": 1000, "member": "none", "ptype": "consumer", "protos": [{"name": "range", "meta": b"m"}]},
    "Heartbeat": lambda v: {"group": "group", "gen": 1, "member": "none"},
    "LeaveGroup": lambda v: {"group": "group", "members": [{"member": "none"}]} if v >= 3 else {"group": "group", "member": "none"},
    "SyncGroup": lambda v: {"group": "group", "gen": 1, "member": "none", "assigns": [{"member": "none", "data": b"a"}]},
    "DescribeGroups": lambda v: {"groups": ["group"]},
    "ListGroups": lambda v: {"states": ["Empty"], "types": ["classic"]},
    "DeleteGroups": lambda v: {"groups": ["group-none"]},
    "OffsetDelete": lambda v: {"group": "group-none", "topics": [{"name": TOPIC, "parts": [{"p": 0}]}]},
    "ConsumerGroupHeartbeat": lambda v: {"group": "group", "member": "m", "epoch": -1, "topics": [TOPIC], "owned": [{"id": UUID, "parts": [0]}]},
    "ConsumerGroupDescribe": lambda v: {"groups": ["group"]},
    "ApiVersions": lambda v: {"name": "hostile", "ver": "1"} if v >= 3 else {},
    "CreateTopics": lambda v: {
        "topics": [{"name": TOPIC + "-new", "n": 1, "rf": 1, "configs": [{"name": "retention.ms", "value": "1000"}]}],
        "validate": True,
    },
    "DeleteTopics": lambda v: {"topics": [{"name": TOPIC + "-none"}]} if v >= 6 else {"names": [TOPIC + "-none"]},
    "DeleteRecords": lambda v: {"topics": [{"name": TOPIC, "parts": [{"p": 0, "off": 0}]}], "timeout": 1000},
    "InitProducerId": lambda v: {},
    "OffsetForLeaderEpoch": lambda v: {"topics": [{"name": TOPIC, "parts": [{"p": 0, "epoch": 0}]}]},
    "DescribeConfigs": lambda v: {"res": [{"type": 2, "name": TOPIC, "keys": ["retention.ms"]}]},
    "AlterConfigs": lambda v: {"res": [{"type": 2, "name": TOPIC, "configs": [{"name": "retention.ms", "value": "1000"}]}], "validate": True},
    "IncrementalAlterConfigs": lambda v: {"res": [{"type": 2, "name": TOPIC, "configs": [{"name": "retention.ms", "op": 0, "value": "1000"}]}], "validate": True},
    "CreatePartitions": lambda v: {"topics": [{"name": TOPIC + "-none", "count": 2, "assigns": [{"brokers": [1]}]}], "validate": True},
    "DescribeCluster": lambda v: {},
    "DescribeTopicPartitions": lambda v: {"topics": [{"name": TOPIC}], "cursor": {"topic": TOPIC, "p": 0}},
}


def offered(bootstrap):
    """(API name, version) of all that ApiVersions lists; Produce without the versions that are only listed."""
    conn = Conn(bootstrap)
    answer = conn.rq("ApiVersions", 0, {})
    conn.close()
    names = {api.key: api.name for api in APIS.values()}
    for key in answer["keys"]:
        for version in range(max(key["min"], 3 if key["key"] == 0 else 0), key["max"] + 1):
            yield names[key["key"]], version


def example(api, version):
    return encode(api, version, EXAMPLES[api](version))

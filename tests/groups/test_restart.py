"""Groups of every client library on one server: members come, leave and are killed, and the server restarts in the middle."""

import acts
import pytest
from course import KINDS, SETTINGS, course, selected
from server import Server

CLIENTS = {  # what each library has beside the classic protocol with an eager assignor
    "java-4.4": "cooperative static consumer consumer-static",
    "java-3.9": "cooperative static consumer",
    "confluent-kafka-python": "cooperative static consumer consumer-static",
    "franz-go": "cooperative static consumer",
    "sarama": "cooperative static",
    "kafka-python": "cooperative static",
    "aiokafka": "static-unfenced",
    "kafkajs": "",
}
MIXED = {
    "range": ("default", ["java-4.4", "sarama", "java-3.9", "confluent-kafka-python", "franz-go", "kafka-python", "aiokafka"]),
    "cooperative": ("cooperative", ["java-4.4", "sarama", "java-3.9", "confluent-kafka-python", "franz-go", "kafka-python"]),
    "consumer": ("consumer", ["java-4.4", "franz-go", "java-3.9", "confluent-kafka-python"]),
}


def plans():
    """name -> (client, assignor, act); what takes longest comes first."""
    found = {}
    for kind in ("static", "static-unfenced", "consumer-static", "consumer", "cooperative", "eager"):
        for client, more in CLIENTS.items():
            if kind in ["eager", *more.split()]:
                found[f"{client}.{kind}"] = (client, *KINDS[kind])
    found |= {f"mixed.{name}": (None, assignor, acts.mixed(*clients)) for name, (assignor, clients) in MIXED.items()}
    return {name: plan for name, plan in found.items() if selected(name)}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """All groups run beside each other."""
    logs = str(tmp_path_factory.mktemp("groups"))
    with Server(logs, **SETTINGS) as server, course(plans(), server.bootstrap, logs) as groups:
        groups.act()
        groups.interrupted(server, "stop")
        groups.interrupted(server, "kill")
        groups.finish()
    return groups.outcomes


@pytest.mark.parametrize("name", plans())
def test_nothing_is_skipped_and_everybody_goes_on_at_the_commits(name, outcomes):
    if outcomes[name]:
        pytest.fail(outcomes[name])

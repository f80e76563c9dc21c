"""Groups of a gateway in front of an Iggy server: first the gateway is restarted, then the server behind it."""

import acts
import pytest
from bridge import GENERATIONS, Bridge
from course import KINDS, SETTINGS, course, selected

GROUPS = ["java-4.4.cooperative", "confluent-kafka-python.consumer", "franz-go.eager", "sarama.static", "kafka-python.eager", "kafkajs.eager"]


def plans():
    found = {}
    for name in (one for one in GROUPS if selected(one)):
        client, _, kind = name.rpartition(".")
        found[name] = (client, KINDS[kind][0], acts.two_share(kind == "static"))
    return found


@pytest.mark.parametrize("generation", GENERATIONS)
def test_nothing_is_skipped_when_either_side_restarts(generation, tmp_path):
    with Bridge(generation, str(tmp_path), **SETTINGS) as bridge, course(plans(), bridge.bootstrap, str(tmp_path)) as groups:
        groups.act()
        groups.interrupted(bridge.gateway, "stop")
        groups.interrupted(bridge.gateway, "kill")
        groups.interrupted(bridge.server, "stop", keeps_groups=True)
        groups.interrupted(bridge.server, "kill", keeps_groups=True)
        groups.finish()
    if failed := [text for text in groups.outcomes.values() if text]:
        pytest.fail("\n".join(failed))

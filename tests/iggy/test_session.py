"""Logging in, the session, and what the server says about itself."""

import pytest
from sdk import PASSWORD, USER, eventually


def test_a_wrong_password_is_refused_with_42_and_the_right_one_works_afterwards(connect):
    client = connect(user=None)
    assert client.refusal("login", user=USER, password="not-the-password") == 42
    client.login(user=USER, password=PASSWORD)
    client.ping()
    assert client.me()["user"] == 0


def test_an_unknown_user_is_refused_like_a_wrong_password(connect):
    assert connect(user=None).refusal("login", user="nobody-here", password=PASSWORD) == 42


def test_nothing_but_a_ping_is_answered_before_the_login(connect):
    client = connect(user=None)
    client.ping()
    assert client.refusal("streams") == 40
    assert client.refusal("create_stream", name="too-early") == 40


def test_a_logout_ends_the_session_and_a_new_login_begins_another(connect):
    client = connect()
    client.logout()
    assert client.refusal("streams") == 40
    client.login(user=USER, password=PASSWORD)
    client.streams()


def test_the_cluster_is_one_leader_at_the_address_that_was_dialled(root, server):
    assert root.cluster() == [{"address": server.iggy_address, "leader": True}]


def test_clients_have_different_numbers(connect):
    assert connect().me()["client"] != connect().me()["client"]


def test_stats_count_what_there_is(root, stream):
    before = root.stats()
    root.create_topic(stream=stream, topic="counted", partitions=3)
    root.send(stream=stream, topic="counted", to={"partition": 1}, messages=[{"payload": "31"}, {"payload": "32"}])
    after = root.stats()
    grown = {name: after[name] - before[name] for name in ("streams", "topics", "partitions", "messages", "consumer_groups")}
    assert grown == {"streams": 0, "topics": 1, "partitions": 3, "messages": 2, "consumer_groups": 0}
    assert after["clients"] >= 1
    assert after["pid"] == before["pid"] > 0


@pytest.mark.parametrize("key", ["message_expiry", "max_topic_size", "durability", "compression_algorithm"])
def test_topic_options_are_described(root, key):
    assert key in root.options(scope="topic")


def test_a_client_that_vanishes_is_no_longer_counted(root, connect):
    client = connect()
    with_it = root.stats()["clients"]
    client.kill()
    eventually("one client less", lambda: root.stats()["clients"] < with_it)

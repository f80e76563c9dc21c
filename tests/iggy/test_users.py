"""Users, permissions and tokens, and what they keep out."""

import pytest
from sdk import USER, message, payloads

PASSWORD = "first-password"


@pytest.fixture
def user(root, name):
    """The name of a user without permissions."""
    root.create_user(name=name + "-u", password=PASSWORD)
    yield name + "-u"
    if root.user(user=name + "-u"):
        root.delete_user(user=name + "-u")


def test_a_user_is_listed_with_its_permissions(root, stream, topic, user):
    assert user in root.users()
    found = root.user(user=user)
    assert (found["name"], found["active"], found["permissions"]) == (user, True, None)
    granted = {
        "global": {"read_servers": True, "poll_messages": True},
        "streams": {
            str(root.stream(stream=stream)["id"]): {"read_stream": True, "topics": {str(root.topic(stream=stream, topic=topic)["id"]): {"send_messages": True}}}
        },
    }
    root.permit(user=user, permissions=granted)
    assert root.user(user=user)["permissions"] == granted
    root.permit(user=user, permissions=None)
    assert root.user(user=user)["permissions"] is None


def test_permissions_can_be_given_with_the_user(root, name):
    root.create_user(name=name, password=PASSWORD, permissions={"global": {"manage_topics": True}})
    assert root.user(user=name)["permissions"] == {"global": {"manage_topics": True}}
    root.delete_user(user=name)


def test_without_permissions_everything_but_ones_own_is_denied_with_41(root, connect, stream, topic, user):
    root.send(stream=stream, topic=topic, to={"partition": 0}, messages=[message("secret")])
    client = connect(user, PASSWORD)
    poll = {"partition": 0, "consumer": "c", "how": "first", "count": 1}
    assert client.refusal("create_stream", name=stream + "-x") == 41
    assert client.refusal("create_topic", stream=stream, topic="x", partitions=1) == 41
    assert client.refusal("streams") == 41
    assert client.refusal("delete_topic", stream=stream, topic=topic) == 41
    assert client.refusal("delete_stream", stream=stream) == 41
    assert client.refusal("send", stream=stream, topic=topic, to={"partition": 0}, messages=[message("x")]) == 41
    assert client.refusal("poll", stream=stream, topic=topic, **poll) == 41
    assert client.refusal("create_group", stream=stream, topic=topic, group="g") == 41
    assert client.refusal("stats") == 41
    assert client.refusal("users") == 41
    assert client.refusal("create_user", name=user + "2", password=PASSWORD) == 41
    assert client.refusal("delete_user", user=USER) == 41
    assert client.user(user=user)["name"] == user
    assert client.me()["user"] == root.user(user=user)["id"]
    assert payloads(root.poll(stream=stream, topic=topic, **poll)) == [b"secret"]


def test_a_permission_works_as_soon_as_it_is_given_and_ends_when_it_is_taken(root, connect, stream, topic, user):
    client = connect(user, PASSWORD)
    send = {"stream": stream, "topic": topic, "to": {"partition": 0}, "messages": [message("x")]}
    assert client.refusal("send", **send) == 41
    root.permit(user=user, permissions={"global": {"send_messages": True}})
    assert client.send(**send) == [0, 0]
    assert client.refusal("create_stream", name=stream + "-x") == 41
    root.permit(user=user, permissions=None)
    assert client.refusal("send", **send) == 41


def test_permissions_of_one_topic_stay_in_that_topic(root, connect, stream, topic, user):
    root.create_topic(stream=stream, topic="other", partitions=1)
    ids = str(root.stream(stream=stream)["id"]), str(root.topic(stream=stream, topic=topic)["id"])
    allowed = {"send_messages": True, "poll_messages": True}
    root.permit(user=user, permissions={"global": {}, "streams": {ids[0]: {"topics": {ids[1]: allowed}}}})
    client = connect(user, PASSWORD)
    assert client.send(stream=stream, topic=topic, to={"partition": 0}, messages=[message("x")]) == [0, 0]
    poll = {"partition": 0, "consumer": "c", "how": "first", "count": 1}
    assert payloads(client.poll(stream=stream, topic=topic, **poll)) == [b"x"]
    assert client.refusal("send", stream=stream, topic="other", to={"partition": 0}, messages=[message("x")]) == 41
    assert client.refusal("poll", stream=stream, topic="other", **poll) == 41


def test_a_name_that_is_taken_is_refused_with_46(root, user):
    assert root.refusal("create_user", name=user, password=PASSWORD) == 46
    root.create_user(name=user + "2", password=PASSWORD)
    assert root.refusal("update_user", user=user + "2", name=user) == 46
    root.delete_user(user=user + "2")


def test_a_renamed_user_logs_in_by_the_new_name(root, connect, user):
    root.update_user(user=user, name=user + "-new")
    assert connect(user=None).refusal("login", user=user, password=PASSWORD) == 42
    connect(user + "-new", PASSWORD)
    root.update_user(user=user + "-new", name=user)


def test_an_inactive_user_is_kept_out(root, connect, user):
    root.update_user(user=user, active=False)
    assert root.user(user=user)["active"] is False
    assert connect(user=None).refusal("login", user=user, password=PASSWORD) == 42
    root.update_user(user=user, active=True)
    connect(user, PASSWORD)


def test_a_password_is_changed_by_who_knows_the_old_one(root, connect, user):
    client = connect(user, PASSWORD)
    assert client.refusal("change_password", user=user, old="not-the-old-one", new="second-password") == 42
    client.change_password(user=user, old=PASSWORD, new="second-password")
    assert connect(user=None).refusal("login", user=user, password=PASSWORD) == 42
    connect(user, "second-password")


def test_a_deleted_user_is_gone_and_its_session_is_worth_nothing(root, connect, stream, topic, user):
    root.permit(user=user, permissions={"global": {"send_messages": True}})
    client = connect(user, PASSWORD)
    send = {"stream": stream, "topic": topic, "to": {"partition": 0}, "messages": [message("x")]}
    client.send(**send)
    root.delete_user(user=user)
    assert client.refusal("send", **send) in (40, 41)
    assert user not in root.users()
    assert root.user(user=user) is None
    assert connect(user=None).refusal("login", user=user, password=PASSWORD) == 42
    assert root.refusal("delete_user", user=user) == 20


def test_root_is_neither_deleted_nor_restricted(root):
    assert root.refusal("delete_user", user=USER) == 48
    assert root.refusal("permit", user=USER, permissions={"global": {}}) == 49


def test_a_token_is_made_listed_used_and_deleted(root, connect, user):
    client = connect(user, PASSWORD)
    token = client.create_token(name="first-token")
    assert len(token) >= 32
    assert client.tokens() == ["first-token"]
    assert client.refusal("create_token", name="first-token") == 51
    other = connect(user=None)
    other.login_token(token=token)
    assert other.me()["user"] == client.me()["user"]
    client.delete_token(name="first-token")
    assert client.tokens() == []
    assert client.refusal("delete_token", name="first-token") == 20
    assert connect(user=None).refusal("login_token", token=token) == 53


def test_tokens_belong_to_their_user(root, connect, user):
    token = root.create_token(name=user[-20:])
    assert connect(user, PASSWORD).tokens() == []
    client = connect(user=None)
    client.login_token(token=token)
    assert client.me()["user"] == 0
    root.delete_token(name=user[-20:])


def test_an_unknown_token_is_refused_with_53(connect):
    assert connect(user=None).refusal("login_token", token="x" * 68) == 53

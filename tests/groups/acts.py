"""What happens to a group before the server is restarted: one function for each kind."""

import functools


def two_leave_two_come(group):
    """Two members share; one leaves, one is killed; who is left, and who comes, go on at the commits."""
    group.join("a")
    group.join("b")
    group.shared("by a and b")
    group.leave("b")
    group.shared("after b left")
    group.join("c")
    group.shared("by a and c")
    group.kill("a")
    group.shared("after a was killed")
    group.join("d")
    group.shared("by c and d")


def static_pair(group):
    """a and b, both static, share; b2, who is to take the place of b, is ready and waits for its may_join. Also what b has, and whether a has been told
    nothing since."""
    a, b = group.join("a", instance="ia"), group.join("b", instance="ib")
    group.shared("by a and b")
    b2 = group.join("b2", instance="ib", now=False)
    group.ready(b2)
    before, there = a.rebalances, set(a.assigned)

    def undisturbed():
        return a.rebalances == before and a.assigned == there

    return b2, set(b.assigned), undisturbed


def static(group, fences=True):
    """A killed static member comes back within its session: it has what it had, and the other one is told nothing. Then another process comes with
    its instance id: it takes the place, and the first one is told that it is fenced. fences: whether the client knows what it is told then."""
    b2, had, undisturbed = static_pair(group)
    group.kill("b")
    b2.may_join.set()
    group.until("b2 in the place of b", lambda: b2.assigned == had, undisturbed)
    group.shared("by a and b2", undisturbed)
    if fences:
        b3 = group.join("b3", instance="ib")
        group.until("b2 fenced", lambda: b2.ended == "FENCED_INSTANCE_ID", undisturbed)
        group.drop("b2")
        group.shared("by a and b3", undisturbed)
        assert b3.assigned == had, group.state()
    group.leave("b3" if fences else "b2")  # a static member does not tell the group; its session ends
    group.shared("after it went")
    group.join("c", instance="ic")
    group.shared("by a and c")
    group.kill("a")
    group.shared("after a was killed")
    group.join("d", instance="id")
    group.shared("by c and d")


def static_consumer(group):
    """The same with group.protocol=consumer: a static member that closes keeps its place; as long as it has not, another process with its instance id
    is refused (111)."""
    b2, had, undisturbed = static_pair(group)
    group.leave("b")
    b2.may_join.set()
    group.until("b2 in the place of b", lambda: b2.assigned == had, undisturbed)
    group.shared("by a and b2", undisturbed)
    b3 = group.join("b3", instance="ib")
    group.until("b3 refused", lambda: b3.ended == "UNRELEASED_INSTANCE_ID", undisturbed)
    group.drop("b3")
    group.shared("by a and b2 still", undisturbed)


def mixed(*clients):
    """Members of different libraries in one group. The first one is killed, the second one leaves."""

    def act(group):
        for client in clients:
            group.join(client, client)
        group.shared(f"by {len(clients)} libraries")
        group.leave(clients[1])
        group.kill(clients[0])
        group.shared(f"by {len(clients) - 2} libraries")

    return act


static_unfenced = functools.partial(static, fences=False)


def two_share(is_static):
    """Nothing more than that."""

    def act(group):
        for name in ("a", "b"):
            group.join(name, instance=f"i{name}" if is_static else None)
        group.shared("by a and b")

    return act

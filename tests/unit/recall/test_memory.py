"""The first tier, and what the tiers keep."""

from monkeycode_lsp.recall import record
from monkeycode_lsp.recall.memory import Memory
from monkeycode_lsp.recall.record import Record


def kept(text="text"):
    return Record(record.VERSION, text, "", None, "engine", "settings")


class Clock:
    """Stands until it is set."""

    now_s = 0.0

    def __call__(self):
        return self.now_s


def test_what_was_used_last_stays_longest():
    memory = Memory(most_bytes=3 * 300, ttl_s=300)
    for name in (b"a", b"b", b"c"):
        memory.put(name, kept("x" * 20))
    assert memory.get(b"a") is not None
    memory.put(b"d", kept("x" * 20))
    assert [name for name in (b"a", b"b", b"c", b"d") if memory.get(name) is not None] == [b"a", b"c", b"d"]


def test_being_used_does_not_make_it_young_again_and_being_kept_again_does():
    clock = Clock()
    memory = Memory(most_bytes=1 << 20, ttl_s=10, clock=clock)
    memory.put(b"used", kept())
    memory.put(b"kept", kept())
    clock.now_s = 8
    assert memory.get(b"used") == kept()
    memory.put(b"kept", kept("newer"))
    clock.now_s = 12
    assert memory.get(b"used") is None
    assert memory.get(b"kept") == kept("newer")
    assert len(memory) == 1


def test_what_is_larger_than_all_there_may_be_is_not_kept_and_harms_nothing_that_comes_later():
    memory = Memory(most_bytes=1_000, ttl_s=300)
    memory.put(b"large", kept("x" * 1_000))
    assert memory.get(b"large") is None
    memory.put(b"small", kept())
    assert memory.get(b"small") == kept()
    memory.clear()
    assert len(memory) == 0
    for number in range(4):
        memory.put(b"%d" % number, kept())
    assert len(memory) == 4  # what was cleared takes no room


def test_a_record_longer_than_any_suggestion_is_a_miss():
    assert record.decode(record.encode(kept("x" * 60_000))) == kept("x" * 60_000)
    assert record.decode(record.encode(kept("x" * record.MOST_BYTES))) is None

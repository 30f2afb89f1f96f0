"""What is found again, and what must not be: table, memory and the tiers beyond."""

import asyncio
import threading

import msgspec
import pytest

from monkeycode_lsp.domain import Origin, Scope, Suggestion
from monkeycode_lsp.recall import record
from monkeycode_lsp.recall.lookup import Recall
from monkeycode_lsp.recall.memory import Memory
from monkeycode_lsp.recall.tier import Reach
from tests.unit.places import URI, at
from tests.unit.virtual import now, on_virtual_time

SCOPE = Scope("engine", "settings", "file:///w")


class Kept:
    """A tier that keeps what it is told, and answers when it is let."""

    def __init__(self, origin=Origin.DISK, *, patience_s=5.0):
        self.origin = origin
        self.patience_s = patience_s
        self.records = {}
        self.asked = []
        self.answers = asyncio.Event()
        self.answers.set()
        self.n_cancelled = 0

    async def get(self, key):
        self.asked.append(key)
        try:
            await self.answers.wait()
        except asyncio.CancelledError:
            self.n_cancelled += 1
            raise
        return self.records.get(key)

    def put(self, key, kept):
        self.records[key] = kept

    async def aclose(self):
        self.closed = True


class Puts(Kept):
    """A tier that notes what it is told, and when."""

    def __init__(self):
        super().__init__()
        self.puts = []

    def put(self, key, kept):
        self.puts.append((kept.text, now()))

    @property
    def texts(self):
        return [text for text, _ in self.puts]


def recall(*tiers, ttl_s=300, clock=None, identify=lambda folder: "team:" + folder):
    memory = Memory(most_bytes=1 << 20, ttl_s=ttl_s, **({"clock": clock} if clock else {}))
    return Recall(memory, tiers=tiers, identify=identify)


def kept(marked, text, *tiers, scope=SCOPE):
    memory = recall(*tiers)
    memory.keep(URI, scope, at(marked), Suggestion(text))
    return memory


def test_the_same_place_is_found_again():
    found = kept("he‸\n", "llo()").find(URI, SCOPE, at("he‸\n"))
    assert (found.text, found.origin) == ("llo()", Origin.MEMORY)


def test_typing_along_hits_and_leaving_misses():
    memory = kept("he‸\n", "llo()\n    more()")
    found = memory.find(URI, SCOPE, at("hel‸\n"))
    assert (found.text, found.origin) == ("lo()\n    more()", Origin.TYPED_THROUGH)
    assert memory.find(URI, SCOPE, at("hello()\n    m‸\n")).text == "ore()"
    assert memory.find(URI, SCOPE, at("hex‸\n")) is None
    assert memory.find(URI, SCOPE, at("hello()\n    more()‸\n")) is None, "nothing is left to show"


@pytest.mark.parametrize("other", ["if not user.active:\n    ‸", "if user.inactive:\n    ‸", "if user.active:\n    ‸\nx"])
def test_a_place_that_differs_is_another_place(other):
    assert kept("if user.active:\n    ‸", "enable(user)").find(URI, SCOPE, at(other)) is None


@pytest.mark.parametrize("field", ["engine", "settings", "workspace"])
async def test_another_engine_setting_or_workspace_is_another_place_in_every_tier(field):
    tier = Kept()
    memory = kept("KEY = ‸", '"a-secret"', tier)
    other = msgspec.structs.replace(SCOPE, **{field: "another"})
    assert memory.find(URI, other, at("KEY = ‸")) is None
    assert await memory.look_further(URI, other, at("KEY = ‸"), for_s=0) is None


def test_another_language_is_another_place():
    assert kept("KEY = ‸", "1").find("file:///w/b.rb", SCOPE, at("KEY = ‸", language="ruby")) is None


def test_the_same_text_in_another_document_of_the_scope_is_found():
    assert kept("a = ‸", "b").find("file:///w/other.py", SCOPE, at("a = ‸", uri="file:///w/other.py")).text == "b"


def test_empty_text_is_kept_nowhere():
    tier = Kept()
    assert kept("a‸", " \n", tier).find(URI, SCOPE, at("a‸")) is None
    assert tier.records == {}


def test_old_entries_are_gone():
    now = [0.0]
    memory = recall(ttl_s=10, clock=lambda: now[0])
    memory.keep(URI, SCOPE, at("a = ‸"), Suggestion("b"))
    memory.forget(URI)
    assert memory.find(URI, SCOPE, at("a = ‸")) is not None
    memory.forget(URI)
    now[0] = 11
    assert memory.find(URI, SCOPE, at("a = ‸")) is None


def test_memory_is_bounded_by_bytes():
    memory = Memory(most_bytes=10_000, ttl_s=300)
    for n in range(1_000):
        memory.put(n.to_bytes(4, "big"), record.Record(1, "x" * 100, "", None, "e", "s"))
    assert 0 < len(memory) <= 10_000 // 600 + 1
    assert memory.get((999).to_bytes(4, "big")) is not None
    assert memory.get((0).to_bytes(4, "big")) is None


def test_what_is_forgotten_is_not_found():
    memory = kept("a = ‸", "b")
    memory.forget_all()
    assert memory.find(URI, SCOPE, at("a = ‸")) is None


# The tiers beyond this process


async def test_what_was_kept_is_found_by_another_process_and_then_nearer():
    near, far = Kept(), Kept(Origin.SHARED)
    await asyncio.sleep(0)
    first = recall(near, far)
    assert await first.look_further(URI, SCOPE, at("a = ‸"), for_s=0) is None  # the team's name of the workspace is found out now
    await until(lambda: first._identities)
    first.keep(URI, SCOPE, at("a = ‸"), Suggestion("b", confidence=-0.5))
    await until(lambda: near.records and far.records)
    near.records.clear()
    second = recall(near, far)
    await second.look_further(URI, SCOPE, at("z = ‸"), for_s=0)
    await until(lambda: second._identities)
    found = await second.look_further(URI, SCOPE, at("a = ‸"), for_s=60)
    assert (found.text, found.origin, found.confidence) == ("b", Origin.SHARED, -0.5)
    await until(lambda: len(near.records) == 1)  # the nearer tier learned it
    assert second.find(URI, SCOPE, at("a = ‸")).origin is Origin.MEMORY


async def test_a_find_ends_the_wait_at_once_and_the_slower_tier_is_let_go():
    near, far = Kept(), Kept(patience_s=60)
    kept("a = ‸", "b", near)
    await until(lambda: near.records)
    far.answers.clear()
    found = await asyncio.wait_for(recall(far, near).look_further(URI, SCOPE, at("a = ‸"), for_s=60), 5)
    assert found.text == "b"
    await until(lambda: far.n_cancelled == 1)


async def test_a_tier_is_waited_for_as_long_as_its_patience_and_no_longer():
    tier = Kept(patience_s=0.01)
    tier.answers.clear()
    assert await asyncio.wait_for(recall(tier).look_further(URI, SCOPE, at("a = ‸"), for_s=0), 5) is None
    await until(lambda: tier.n_cancelled == 1)


async def test_a_tier_that_is_out_of_order_is_not_asked():
    tier = Kept(patience_s=0.0)
    assert await recall(tier).look_further(URI, SCOPE, at("a = ‸"), for_s=0) is None
    assert tier.asked == []


async def test_a_miss_still_takes_the_time_of_the_debounce():
    loop = asyncio.get_running_loop()
    began = loop.time()
    assert await recall(Kept()).look_further(URI, SCOPE, at("a = ‸"), for_s=0.05) is None
    assert loop.time() - began >= 0.045


async def test_a_cancelled_wait_lets_the_tiers_go():
    tier = Kept()
    tier.answers.clear()
    waiting = asyncio.create_task(recall(tier).look_further(URI, SCOPE, at("a = ‸"), for_s=60))
    await until(lambda: tier.asked)
    waiting.cancel()
    await until(lambda: tier.n_cancelled == 1)


async def test_a_record_of_other_settings_under_the_same_key_is_a_miss():
    tier = Kept()
    kept("a = ‸", "b", tier)
    await until(lambda: tier.records)
    tier.records = {key: msgspec.structs.replace(value, engine="another") for key, value in tier.records.items()}
    assert await recall(tier).look_further(URI, SCOPE, at("a = ‸"), for_s=0) is None


async def test_two_checkouts_of_one_repository_share_and_two_repositories_do_not():
    shared = Kept(Origin.SHARED)

    async def asked(folder, identity, *, keep=""):
        mine = recall(shared, identify=lambda _folder: identity)
        scope = msgspec.structs.replace(SCOPE, workspace=folder)
        await mine.look_further(URI, scope, at("z = ‸"), for_s=0)
        await until(lambda: mine._identities)
        if keep:
            mine.keep(URI, scope, at("a = ‸"), Suggestion(keep))
            await mine.aclose()  # what is still to be put is put
        found = await mine.look_further(URI, scope, at("a = ‸"), for_s=0)
        return found.text if found else None

    await asked("file:///home/ann/app", "host/team/app", keep="b")
    assert await asked("file:///home/bob/src/app", "host/team/app") == "b"
    assert await asked("file:///home/bob/src/app", "host/team/other") is None


async def test_a_workspace_that_cannot_be_looked_at_costs_one_thread_and_is_shared_as_soon_as_it_can():
    shared, go, looked_at = Kept(Origin.SHARED), threading.Event(), []

    def identify(folder):
        looked_at.append(folder)
        assert go.wait(60)
        return "host/team/app"

    for _ in range(5):  # as after a change of settings
        mine = recall(shared, identify=identify)
        for _ in range(3):
            await mine.look_further(URI, SCOPE, at("z = ‸"), for_s=0)
        await until(lambda: looked_at)
        await mine.aclose()
    assert len(looked_at) == 1
    go.set()
    mine = recall(shared, identify=identify)
    async with asyncio.timeout(5):
        while not mine._identities:
            await mine.look_further(URI, SCOPE, at("z = ‸"), for_s=0.001)


@on_virtual_time
async def test_what_is_kept_goes_to_each_tier_once_after_a_moment_of_quiet():
    tiers = Puts(), Puts()
    memory = kept("a = ‸", "b", *tiers)
    await asyncio.sleep(0.015)
    memory.keep(URI, SCOPE, at("c = ‸"), Suggestion("d"))
    await asyncio.sleep(0.015)
    assert [tier.texts for tier in tiers] == [[], []], "another ask came before it was quiet"
    await asyncio.sleep(0.015)
    assert [tier.texts for tier in tiers] == [["b", "d"], ["b", "d"]]
    await asyncio.sleep(10)
    memory.keep(URI, SCOPE, at("e = ‸"), Suggestion("f"))
    await asyncio.sleep(10)
    assert [tier.texts for tier in tiers] == [["b", "d", "f"], ["b", "d", "f"]]


@on_virtual_time
async def test_what_is_kept_does_not_wait_for_ever_where_it_is_never_quiet():
    tier, kept_at = Puts(), {}
    memory = recall(tier)
    for number in range(200):
        kept_at[str(number)] = now()
        memory.keep(URI, SCOPE, at(f"a{number} = ‸"), Suggestion(str(number)))
        await asyncio.sleep(0.01)
    await asyncio.sleep(10)
    assert tier.texts == list(kept_at)
    assert max(put_at - kept_at[text] for text, put_at in tier.puts) < 0.6
    assert len({put_at for _, put_at in tier.puts}) < 10, "many at a time"


@on_virtual_time
async def test_what_is_still_to_be_put_is_put_once_when_the_process_forgets_or_ends():
    forgotten, closed = Puts(), Puts()
    kept("a = ‸", "b", forgotten).forget_all()
    await kept("a = ‸", "b", closed).aclose()
    assert closed.texts == ["b"]
    await asyncio.sleep(10)
    assert (forgotten.texts, closed.texts) == (["b"], ["b"])


async def test_closing_closes_every_tier():
    tiers = Kept(), Kept(Origin.SHARED)
    await recall(*tiers).aclose()
    assert all(tier.closed for tier in tiers)


@pytest.mark.parametrize(
    "data", [b"", b"\x80", b"x" * 70_000, b"\xff\xfe", b"\x96\x02\xa1x\xa0\xc0\xa1e\xa1s", b"\x96\x01\xa1 \xa0\xc0\xa1e\xa1s"]
)
def test_what_is_no_record_of_this_version_with_a_text_is_a_miss(data):
    assert record.decode(data) is None


def test_a_record_survives_its_wire_form():
    kept = record.Record(record.VERSION, "é\n  x", "  ", -0.25, "e", "s")
    assert record.decode(record.encode(kept)) == kept


async def until(condition):
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what is waited for is another task's next step
            await asyncio.sleep(0)


@pytest.mark.parametrize(("reach", "kept_at"), [(Reach.PROCESS, []), (Reach.MACHINE, ["disk"]), (Reach.TEAM, ["disk", "shared"])])
@on_virtual_time
async def test_a_place_goes_no_further_than_it_may(reach, kept_at):
    tiers = {"disk": Kept(Origin.DISK), "shared": Kept(Origin.SHARED)}
    memory = recall(*tiers.values())
    memory.meet(SCOPE.workspace)
    await asyncio.sleep(0.1)
    await memory.look_further(URI, SCOPE, at("he‸\n"), for_s=0.1)  # the workspace's name in the team is known
    for tier in tiers.values():
        tier.asked.clear()
    await memory.look_further(URI, SCOPE, at("hel‸\n"), for_s=0.1, reach=reach)
    memory.keep(URI, SCOPE, at("he‸\n"), Suggestion("llo()"), reach=reach)
    await asyncio.sleep(1)
    assert [name for name, tier in tiers.items() if tier.asked] == kept_at
    assert [name for name, tier in tiers.items() if tier.records] == kept_at
    assert memory.find(URI, SCOPE, at("he‸\n")).text == "llo()"
    await memory.aclose()

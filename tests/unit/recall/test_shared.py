"""The team's tier against a real server."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import pytest

from monkeycode_lsp import threads
from monkeycode_lsp.domain import Origin
from monkeycode_lsp.recall import record
from monkeycode_lsp.recall.record import Record
from monkeycode_lsp.recall.shared import PATIENCE_S, Shared
from tests import redis_server, servers
from tests.certificates import Authority
from tests.redis_server import RedisServer

KEY = b"k" * 16
OTHER = b"o" * 16
RECORD = Record(record.VERSION, "return total", "    ", 0.9, "engine", "settings")
WITHIN_S = 5
"""Far more than anything here takes, on a busy machine too."""


class Clock:
    """The real one, put forward when a test does not want to wait."""

    def __init__(self):
        self.skipped_s = 0.0

    def __call__(self):
        return time.monotonic() + self.skipped_s


class Team:
    """One member's tier, and what its user was told."""

    def __init__(self, url, **how):
        self.told = []
        self.clock = Clock()
        self.tier = Shared(url, ttl_s=how.pop("ttl_s", 60), warn=self.told.append, now=self.clock, **how)
        self.tier.open()

    async def settled(self):
        """Nothing is on its way."""
        async with asyncio.timeout(WITHIN_S):
            while tasks := self.tier._knocks | self.tier._gets | self.tier._puts:
                await asyncio.wait(tasks)

    async def ready(self):
        await self.settled()
        if not self.tier.patience_s:  # four slow answers in a row: a very busy machine
            await self.back()

    async def put(self, key=KEY, kept=RECORD):
        self.tier.put(key, kept)
        await self.settled()

    async def found(self, key=KEY):
        """What is there, on however busy a machine."""
        async with asyncio.timeout(WITHIN_S):
            while True:
                found = await self.tier.get(key)
                await self.settled()
                if found is not None:
                    return found
                self.clock.skipped_s += 1

    async def break_(self):
        """Ask until it is out of order."""
        async with asyncio.timeout(WITHIN_S):
            while self.tier.patience_s:
                assert await self.tier.get(KEY) is None
                await self.settled()

    async def back(self):
        """Let the rests pass until the server is found again."""
        async with asyncio.timeout(WITHIN_S):
            while not self.tier.patience_s:
                self.clock.skipped_s += 60
                self.tier.put(OTHER, RECORD)
                await self.settled()

    async def patience(self):
        """How long one get takes; None is its answer."""
        begun = time.monotonic()
        assert await self.tier.get(KEY) is None
        return time.monotonic() - begun


@asynccontextmanager
async def member(url, **how):
    team = Team(url, **how)
    try:
        yield team
    finally:
        await team.tier.aclose()


@pytest.fixture
def server(tmp_path):
    with RedisServer(tmp_path / "redis") as running:
        yield running


@pytest.fixture(autouse=True)
def _alone():
    """Nothing of this test is left on a thread, for it would be in the next one's way."""
    yield
    end = time.monotonic() + WITHIN_S
    while threads.at_work("team's cache"):
        assert time.monotonic() < end
        time.sleep(0.001)


pytestmark = redis_server.needed


async def test_what_one_member_keeps_another_finds(server):
    async with member(server.url) as one, member(server.url) as other:
        await one.ready()
        await other.ready()
        assert await other.tier.get(KEY) is None
        await one.put()
        assert await other.found() == RECORD
        assert await other.tier.get(OTHER) is None
        assert other.tier.origin is Origin.SHARED
        assert one.told == other.told == []


async def test_the_time_to_live_is_the_servers_business(server):
    async with member(server.url, ttl_s=123) as team:
        await team.ready()
        await team.put()
        (name,) = names(server)
        assert 60 < int(server.run("TTL", name)[1:]) <= 123


async def test_names_on_the_server_tell_nothing_and_depend_on_the_password(tmp_path):
    seen = set()
    for password in ("", "one", "two"):
        with RedisServer(tmp_path / f"redis-{password}", password=password) as server:
            async with member(server.url) as team:
                await team.ready()
                await team.put()
                seen.update(names(server))
    assert len(seen) == 3
    for name in seen:
        prefix, digest = name.rsplit(":", 1)
        assert prefix == "monkeycode:1"
        assert len(bytes.fromhex(digest)) == 20
        assert KEY.hex() not in name


@pytest.mark.parametrize(
    "value",
    [b"", b"garbage", record.encode(RECORD), b"x" * 1_000_000],
    ids=["empty", "garbage", "not sealed", "huge"],
)
async def test_what_is_no_record_is_a_miss(server, value):
    async with member(server.url) as team:
        await team.ready()
        await team.put()
        (name,) = names(server)
        server.run("SET", name, value)
        assert await team.tier.get(KEY) is None
        assert team.tier.patience_s == PATIENCE_S
        assert team.told == []


async def test_a_record_of_another_version_is_a_miss_and_no_trouble(server):
    async with member(server.url) as team:
        await team.ready()
        await team.put(kept=Record(99, "x", "", None, "", ""))
        assert len(names(server)) == 1
        for _ in range(20):
            assert await team.tier.get(KEY) is None
        assert team.tier.patience_s == PATIENCE_S
        assert team.told == []


@pytest.mark.parametrize("how", ["of another key", "cut off", "changed"])
async def test_what_was_not_kept_under_this_key_is_a_miss_and_a_server_that_goes_on_so_is_left_alone(server, how):
    async with member(server.url) as team:
        await team.ready()
        await team.put(OTHER)
        (other,) = names(server)
        await team.put()
        (name,) = names(server) - {other}
        value = server.run("GET", other if how == "of another key" else name).partition(b"\r\n")[2].removesuffix(b"\r\n")
        if how != "of another key":
            value = value[:-1] + (b"!" if how == "changed" else b"")
        assert await team.found() == RECORD
        server.run("SET", name, value)
        assert await team.tier.get(KEY) is None
        assert team.tier.patience_s == PATIENCE_S  # one of them proves nothing
        assert "something else than was kept" in await trouble(team)


async def test_another_kind_of_value_is_a_miss_and_no_trouble(server):
    async with member(server.url) as team:
        await team.ready()
        await team.put()
        (name,) = names(server)
        server.run("DEL", name)
        server.run("LPUSH", name, "x")
        for _ in range(20):
            assert await team.tier.get(KEY) is None
        assert team.tier.patience_s == PATIENCE_S
        assert team.told == []


async def test_a_record_too_large_and_one_that_is_no_text_are_not_sent(server):
    async with member(server.url) as team:
        await team.ready()
        await team.put(kept=Record(record.VERSION, "x" * record.MOST_BYTES, "", None, "e", "s"))
        await team.put(kept=Record(record.VERSION, "\ud800", "", None, "e", "s"))
        assert names(server) == set()


async def test_killed_and_started_again_it_is_used_again_and_the_user_is_told_once(server, caplog):
    caplog.set_level(logging.INFO, logger="monkeycode_lsp")
    async with member(server.url) as team:
        await team.ready()
        await team.put()
        server.kill()
        await team.break_()
        assert team.tier.patience_s == 0.0
        for _ in range(20):
            team.clock.skipped_s += 60
            await team.put()
            assert await team.tier.get(KEY) is None
            await team.settled()
        assert len(team.told) == 1
        assert f"127.0.0.1:{server.port} cannot be reached" in team.told[0]
        server.start()
        await team.back()
        assert [log.message for log in caplog.records if "is back" in log.message] == [
            f"The team's cache at 127.0.0.1:{server.port} is back."
        ]
        await team.put()
        assert await team.found() == RECORD
        server.kill()
        await team.break_()
        assert len(team.told) == 1


async def test_while_it_rests_nothing_is_sent(server):
    async with member(server.url) as team:
        await team.ready()
        server.kill()
        await team.break_()
        async with asyncio.timeout(WITHIN_S):
            while team.tier._reads.passes(team.clock()):
                await team.put()
        server.start()
        for _ in range(50):
            team.tier.put(KEY, RECORD)
            assert await team.tier.get(KEY) is None
        assert not team.tier._knocks
        assert names(server) == set()


async def test_one_that_hangs_is_never_waited_for_and_its_late_answers_are_thrown_away(server):
    async with member(server.url) as team:
        await team.ready()
        await team.put()
        await team.put(OTHER, Record(record.VERSION, "other", "", None, "engine", "settings"))
        server.hang()
        waits = [await team.patience() for _ in range(3)]
        server.go_on()
        await team.settled()
        # The late answers were read to their end: the next ones are right.
        assert (await team.found(OTHER)).text == "other"
        assert await team.found() == RECORD
        assert min(waits) < 10 * PATIENCE_S


async def test_one_that_goes_on_hanging_is_left_alone(server):
    async with member(server.url) as team:
        await team.ready()
        server.hang()
        await team.break_()
        assert team.tier.patience_s == 0.0
        assert len(team.told) == 1
        assert "does not answer in time" in team.told[0] or "too slowly" in team.told[0]
        server.go_on()
        await team.back()
        await team.put()
        assert await team.found() == RECORD


async def test_a_get_given_up_by_its_asker_leaves_the_connection_in_order(server):
    async with member(server.url) as team:
        await team.ready()
        await team.put()
        before = connections(server)
        assert len(before) == 1
        server.hang()
        asked = asyncio.create_task(team.tier.get(KEY))
        for _ in range(3):
            await asyncio.sleep(0)
        asked.cancel()
        await asyncio.wait({asked})
        server.go_on()
        await team.settled()
        assert await team.found() == RECORD
        assert connections(server) == before


async def test_only_so_much_is_on_its_way_at_a_time(server):
    async with member(server.url) as team:
        await team.ready()
        server.hang()
        for n in range(100):
            team.tier.put(b"%16d" % n, RECORD)
        asked = [asyncio.create_task(team.tier.get(KEY)) for _ in range(100)]
        await asyncio.wait(asked)
        assert len(team.tier._puts | team.tier._gets) <= 8
        server.go_on()
        await team.settled()
        assert server.run("CLIENT", "LIST").count(b"id=") <= 10
        assert len(names(server)) <= 4


async def test_closing_is_quick_whatever_the_server_does(server):
    async with member(server.url) as team:
        await team.ready()
        team.tier.put(KEY, RECORD)
        await team.tier.aclose()
        assert len(names(server)) == 1
    async with member(server.url) as team:
        await team.ready()
        server.hang()
        team.tier.put(KEY, RECORD)
        asked = asyncio.create_task(team.tier.get(KEY))
        await asyncio.sleep(0)
        begun = time.monotonic()
        await team.tier.aclose()
        await team.tier.aclose()
        assert time.monotonic() - begun < 6
        assert await asked is None
        assert await team.tier.get(KEY) is None
        team.tier.put(KEY, RECORD)
        assert team.told == []
    server.go_on()


async def test_closing_in_the_middle_of_a_connection_is_fine(server):
    team = Team(server.url)
    await asyncio.sleep(0)
    await team.tier.aclose()
    assert team.told == []


async def test_a_server_that_is_not_there_at_all_is_told_once():
    async with member(f"redis://:hunter2@127.0.0.1:{servers.unused_port()}/0") as team:
        for _ in range(10):
            await team.put()
            assert await team.tier.get(KEY) is None
            team.clock.skipped_s += 60
        assert len(team.told) == 1
        assert "cannot be reached" in team.told[0]
        assert "hunter2" not in team.told[0]


async def trouble(team, host="127.0.0.1"):
    """What the user is told after some use."""
    for n in range(5):
        await team.put(b"%16d" % n)
        assert await team.tier.get(KEY) is None
    assert team.tier.patience_s == 0.0
    assert len(team.told) == 1
    assert host in team.told[0]
    return team.told[0]


@pytest.mark.parametrize("given", ["", ":hunter2@", "nobody:hunter2@"])
async def test_a_wrong_password_is_told_without_showing_it(tmp_path, given):
    with RedisServer(tmp_path / "redis", password="right") as server:
        async with member(server.url.replace(":right@", given)) as team:
            told = await trouble(team)
    assert "password" in told
    assert "hunter2" not in told


async def test_a_password_that_is_not_asked_for_is_told(server):
    async with member(server.url.replace("redis://", "redis://:hunter2@")) as team:
        told = await trouble(team)
    assert "hunter2" not in told


async def test_a_user_who_may_not_read_is_told_which_right_is_missing(server):
    server.run("ACL", "SETUSER", "guest", "on", ">pw", "~*", "+ping")
    async with member(server.url.replace("redis://", "redis://guest:pw@")) as team:
        assert "GETRANGE" in await trouble(team)


@pytest.mark.parametrize("how", ["replica", "full", "may not write"])
async def test_a_server_that_takes_nothing_is_still_read(server, how):
    async with member(server.url) as one:
        await one.ready()
        await one.put()
        url = server.url
        if how == "replica":
            server.run("REPLICAOF", "127.0.0.1", str(servers.unused_port()))
        elif how == "full":
            server.run("CONFIG", "SET", "maxmemory", "1")
        else:
            server.run("ACL", "SETUSER", "default", "-set")
        async with member(url) as team:
            await team.ready()
            for n in range(10):
                await team.put(b"%16d" % n)
            assert len(team.told) == 1
            assert "takes no new suggestions" in team.told[0]
            assert await team.found() == RECORD
            server.run("REPLICAOF", "NO", "ONE")
            server.run("CONFIG", "SET", "maxmemory", "0")
            server.run("ACL", "SETUSER", "default", "+set")
            team.clock.skipped_s += 60
            await team.put(OTHER)
            assert await team.found(OTHER) == RECORD
            assert len(team.told) == 1


async def test_a_server_that_refuses_further_clients_is_left_alone(server):
    async with member(server.url) as first:
        await first.ready()
        server.run("CONFIG", "SET", "maxclients", "1")
        async with member(server.url) as team:
            await trouble(team)


@asynccontextmanager
async def answering(reply, delays_s=(0,)):
    """The URL of a server that says `reply` to each command, the last delay after it was asked."""
    serving = set()

    async def serve(reader, writer):
        serving.add(asyncio.current_task())
        try:
            while data := await reader.read(1000):
                await asyncio.sleep(delays_s[-1])
                writer.write(reply * (data.count(b"*") or 1))
                await writer.drain()
        except ConnectionError:
            pass
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        if serving:
            await asyncio.wait(serving, timeout=WITHIN_S)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"-LOADING Redis is loading the dataset in memory\r\n", "loading"),
        (b"-MOVED 3999 127.0.0.1:6381\r\n", "cluster"),
        (b"-CLUSTERDOWN Hash slot not served\r\n", "cluster"),
        (b"-ERR unknown command 'GETRANGE', with args beginning with: 'hunter2'\r\n", "refuses"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "no Redis"),
        (b":1\r\n", "no Redis"),
        (b":x\r\n", "no Redis"),
        (b"$x\r\n", "no Redis"),
        (b"*1\r\n" * 5000, "no Redis"),
        (b"\x00\xff" * 100_000, ""),
        (b"$999999999999\r\nx", "no Redis"),
        (b"$-5\r\nx\r\n", "no Redis"),
        (b"$100\r\nx", "answer in time"),
        (b"", "answer in time"),
    ],
)
async def test_a_server_that_says_something_else_never_fails_an_ask(data, words):
    async with answering(data) as url, member(url) as team:
        async with asyncio.timeout(30):
            for _ in range(4):
                await team.settled()
                assert await team.tier.get(KEY) is None
            told = await trouble(team)
    assert words in told
    assert "hunter2" not in told


NOTHING = b"$0\r\n\r\n"


async def test_a_server_that_is_always_late_is_left_alone():
    async with answering(NOTHING, [3 * PATIENCE_S]) as url, member(url) as team:
        assert "too slowly" in await trouble(team)


async def test_a_server_that_becomes_slow_is_left_alone_and_used_again_when_it_is_quick():
    delays_s = [0]
    async with answering(NOTHING, delays_s) as url, member(url) as team:
        await team.ready()
        delays_s.append(3 * PATIENCE_S)
        await team.break_()
        assert len(team.told) == 1
        assert "too slowly" in team.told[0]
        delays_s.append(0)
        await team.back()
        assert len(team.told) == 1


def connections(server):
    """The numbers of all connections but the one that asks."""
    return {
        line.split()[0] for line in server.run("CLIENT", "LIST").splitlines() if line.startswith(b"id=") and b"cmd=client|list" not in line
    }


def names(server):
    """The keys on the server."""
    return {line.decode() for line in server.run("KEYS", "*").split(b"\r\n") if line.startswith(b"monkeycode:")}


async def test_a_reply_that_is_announced_as_huge_or_as_a_list_is_not_read():
    for head in (b"$900000000\r\n", b"*900000000\r\n"):
        sent = []

        async def pour(reader, writer, head=head, sent=sent):
            try:
                while data := await reader.read(1000):
                    if b"GETRANGE" not in data:
                        writer.write(b"+OK\r\n" * data.count(b"*"))
                        continue
                    writer.write(head)
                    for _ in range(500):
                        writer.write(b"$1\r\nx\r\n" * 50_000)
                        await writer.drain()
                        sent.append(350_000)
            except ConnectionError:
                pass
            writer.close()

        pourer = await asyncio.start_server(pour, "127.0.0.1", 0)
        async with pourer, member(f"redis://127.0.0.1:{pourer.sockets[0].getsockname()[1]}") as team:
            assert "no Redis" in await trouble(team)
        # What is on its way between two processes is never more than a few megabytes for each connection.
        assert sum(sent) < 100_000_000


# The server's name


class NameService:
    """Hangs until it is let go."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)
        self.asked = []
        self.go = threading.Event()

    def __call__(self, host):
        self.asked.append(host)
        assert self.go.wait(60)
        return self.numbers

    async def was_asked(self):
        async with asyncio.timeout(WITHIN_S):
            while not self.asked:  # noqa: ASYNC110 - on another thread
                await asyncio.sleep(0.001)


@pytest.fixture
def names_of_servers():
    service = NameService("127.0.0.1")
    yield service
    service.go.set()


async def test_while_the_name_is_looked_up_nobody_waits_and_nobody_looks_it_up_again(server, names_of_servers):
    url = server.url.replace("127.0.0.1", "cache.example")
    async with member(url, resolve=names_of_servers) as team:
        await names_of_servers.was_asked()
        for _ in range(50):
            team.clock.skipped_s += 60
            team.tier.put(KEY, RECORD)
            assert await team.tier.get(KEY) is None
        assert team.tier.patience_s == 0.0
        assert names_of_servers.asked == ["cache.example"]
        names_of_servers.go.set()
        await team.ready()
        await team.put()
        assert await team.found() == RECORD
        assert team.told == []


async def test_one_name_that_hangs_is_enough_however_often_the_setting_changes(server, names_of_servers):
    for n in range(10):
        async with member(f"redis://c{n}.example:{server.port}", resolve=names_of_servers) as team:
            assert await team.tier.get(KEY) is None
            await names_of_servers.was_asked()
            await asyncio.sleep(0.01)  # a further one would be asked for now
    assert names_of_servers.asked == ["c0.example"]
    names_of_servers.go.set()
    async with member(server.url, resolve=names_of_servers) as team:
        await team.back()
        assert team.told == []


async def test_closing_does_not_wait_for_a_name_that_hangs(names_of_servers):
    async with member("redis://cache.example", resolve=names_of_servers) as team:
        await names_of_servers.was_asked()
        begun = time.monotonic()
        await team.tier.aclose()
        assert time.monotonic() - begun < 6


async def test_a_name_that_is_not_known_is_told_once(names_of_servers):
    names_of_servers.numbers = []
    names_of_servers.go.set()
    async with member("redis://127.0.0.1.example", resolve=names_of_servers) as team:
        assert "cannot be reached" in await trouble(team)


async def test_of_several_addresses_the_one_that_answers_is_used_and_a_move_is_noticed(server, names_of_servers):
    names_of_servers.go.set()
    names_of_servers.numbers = ["::1", "127.0.0.2", "127.0.0.1"]
    async with member(server.url.replace("127.0.0.1", "cache.example"), resolve=names_of_servers) as team:
        await team.ready()
        await team.put()
        assert await team.found() == RECORD
        names_of_servers.numbers = ["127.0.0.2"]
        server.kill()
        await team.break_()
        server._arguments += ["--bind", "127.0.0.1 127.0.0.2"]
        server.start()
        await team.back()
        assert b"127.0.0.2" in server.run("CLIENT", "LIST")


async def test_the_event_loops_own_threads_are_left_to_others(server):
    class Nobody(ThreadPoolExecutor):
        def submit(self, *_args, **_kwargs):
            raise AssertionError("the shared cache asked for one of the loop's own threads")

    asyncio.get_running_loop().set_default_executor(Nobody())
    async with member(server.url.replace("127.0.0.1", "localhost")) as team:
        await team.ready()
        await team.put()
        assert await team.found() == RECORD
        assert team.told == []


# TLS, sockets, settings


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    made = Authority.make(tmp_path_factory.mktemp("authority"))
    if made is None:
        pytest.skip("openssl is not installed")
    return made


async def test_over_tls_with_the_teams_authority(tmp_path, authority):
    with RedisServer(tmp_path / "redis", authority=authority, password="right") as server:
        async with member(server.url) as team:
            await team.ready()
            await team.put()
            assert await team.found() == RECORD
            server.hang()
            begun = time.monotonic()
            await team.tier.aclose()
            assert time.monotonic() - begun < 6
        server.go_on()
        async with member(server.url.replace("127.0.0.1", "localhost"), resolve=lambda _: ["127.0.0.2", "127.0.0.1"]) as named:
            await named.ready()
            assert await named.found() == RECORD
        async with member(server.url.replace("127.0.0.1", "cache.example"), resolve=lambda _: ["127.0.0.1"]) as other:
            assert "certificate that is not trusted" in await trouble(other, "cache.example")  # it is another name's
        async with member(server.url.partition("?")[0]) as stranger:
            assert "certificate that is not trusted" in await trouble(stranger)
        async with member(server.url.replace("rediss:", "redis:").partition("?")[0]) as plain:
            await trouble(plain)


async def test_tls_with_a_server_that_has_none_is_told(server):
    async with member(server.url.replace("redis:", "rediss:")) as team:
        await trouble(team)


async def test_a_certificate_file_that_cannot_be_read_is_told_once(tmp_path):
    for text in (None, "no certificate"):
        path = tmp_path / "ca.pem"
        if text:
            path.write_text(text)
        async with member(f"rediss://127.0.0.1:1?ssl_ca_certs={path}") as team:
            for _ in range(3):
                await team.put()
            assert len(team.told) == 1
            assert "ssl_ca_certs" in team.told[0]
            assert team.tier.patience_s == 0.0


@pytest.mark.skipif(sys.platform == "win32", reason="sockets with a path")
async def test_over_a_unix_socket(tmp_path_factory):
    folder = tmp_path_factory.mktemp("s")
    with RedisServer(folder, "--unixsocket", str(folder / "s")):
        async with member(f"unix://{folder / 's'}") as team:
            await team.ready()
            await team.put()
            assert await team.found() == RECORD


async def test_a_url_that_cannot_be_used_is_told_once_and_costs_nothing():
    async with member("redis://:hunter2@host:port") as team:
        await team.put()
        assert await team.tier.get(KEY) is None
        assert team.tier.patience_s == 0.0
        assert len(team.told) == 1
        assert "cache.sharedUrl" in team.told[0]
        assert "hunter2" not in team.told[0]


async def test_without_the_package_the_user_is_told_how_to_get_it(server, monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.delitem(sys.modules, "monkeycode_lsp.recall.redis_link", raising=False)
    async with member(server.url) as team:
        for _ in range(3):
            await team.put()
            assert await team.tier.get(KEY) is None
        assert team.tier.patience_s == 0.0
        assert len(team.told) == 1
        assert "monkeycode-lsp[shared]" in team.told[0]


async def test_no_proxy_stands_between(server, monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{servers.unused_port()}")
        monkeypatch.setenv(name.lower(), f"http://127.0.0.1:{servers.unused_port()}")
    async with member(server.url) as team:
        await team.ready()

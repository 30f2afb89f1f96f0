"""Which member of a pool is asked next.  Pure: it reads members and changes nothing.

Trusted ones first, and none that is much slower than another; a document stays with the server that has its text in the
KV cache, unless that one has much more to do than another, or did much more of late; else who has the fewest asks for its weight.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence

from monkeycode_lsp.engines.remote.pool.latency import is_much_slower
from monkeycode_lsp.engines.remote.pool.member import Member, Standing
from monkeycode_lsp.errors import EngineError, EngineUnavailableError

_LOYALTY = 2.0
"""So many asks more, by weight, its server may have before a document goes elsewhere: reading a prompt anew costs about as much."""
_FAIR = 32.0
"""So many asks more it may have served.  Else all documents would stay where they went while another server was away,
and those of an editor with one document would never be shared; one prompt in so many is read anew for that."""
_N_SESSIONS = 512


class Sessions:
    """Which member served each document last."""

    # The mutable state is that table, the least used ones first; it changes in `served` only.

    def __init__(self) -> None:
        self._members: OrderedDict[str, Member] = OrderedDict()

    def member(self, session: str) -> Member | None:
        return self._members.get(session) if session else None

    def served(self, session: str, member: Member) -> None:
        if not session:
            return
        self._members[session] = member
        self._members.move_to_end(session)
        if len(self._members) > _N_SESSIONS:
            self._members.popitem(last=False)


def usable(members: Iterable[Member], avoid: Collection[Member] = ()) -> list[Member]:
    """Those that an ask may go to, all of one standing: the best that there is."""
    found: list[Member] = []
    best = Standing.LEFT_OUT
    for member in members:
        if member in avoid or member.is_resting:
            continue
        standing = member.standing
        if standing < best:
            best, found = standing, []
        if standing == best:
            found.append(member)
    return found


def has_place(member: Member, *, limit: int, urgent: bool, is_alone: bool = False) -> bool:
    """Whether a member may have one ask more.  `is_alone`: there is no other one to spare it for.

    What nobody waits for leaves the last place free: it is held for seconds, and who types would notice.
    """
    if member.standing is not Standing.GOOD and not is_alone and member.n_asked > 0:
        return False
    return member.n_taken < (limit if urgent else max(1, limit - 1))


def slow(members: Sequence[Member]) -> list[Member]:
    """Those that are much slower than another one.  One that was never asked counts as quick: a single ask will tell."""
    paces = [pace_s for member in members if (pace_s := _pace_s(member)) is not None]
    quickest_s = min(paces, default=0.0)
    return [member for member in members if member.latencies.is_certain and is_much_slower(member.latencies.pace_s or 0.0, quickest_s)]


def choose(
    members: Sequence[Member], *, limit: int, urgent: bool = True, preferred: Member | None = None, avoid: Collection[Member] = ()
) -> Member | None:
    """The member that gets the next ask; None: all that may be asked have enough to do."""
    is_alone = len(members) == 1
    free = [member for member in usable(members, avoid) if has_place(member, limit=limit, urgent=urgent, is_alone=is_alone)]
    if not free:
        return None
    if behind := slow(free):
        tried = next((member for member in behind if member.is_worth_a_try), None)
        if tried is not None:
            return tried
        free = [member for member in free if member not in behind]
    least = min(free, key=_load)
    return preferred if preferred in free and _may_stay(preferred, least) else least


def unusable(members: Iterable[Member]) -> EngineError:
    """Why none of them can be asked: what the first one said last."""
    for member in members:
        error = member.server.backoff.error or member.error
        if error is not None:
            return error.with_traceback(None)
    return EngineUnavailableError("No endpoint of `remote.endpoints` can be asked now.", remedy="Try again in a moment.")


def catch_up(member: Member, members: Iterable[Member]) -> None:
    """One that was away, or slow, does not get all asks until it has served as many as the others."""
    shares = [other.n_served / other.weight for other in members if other is not member and other.is_good]
    if shares:
        member.n_served = max(member.n_served, min(shares) * member.weight)


def _may_stay(at: Member, least: Member) -> bool:
    (n_asked, n_served), (least_asked, least_served) = _load(at), _load(least)
    return n_asked - least_asked <= _LOYALTY and n_served - least_served <= _FAIR


def _pace_s(member: Member) -> float | None:
    if member.latencies.pace_s is None and member.n_asked == 0:
        return 0.0
    return member.latencies.pace_s


def _load(member: Member) -> tuple[float, float]:
    return member.n_asked / member.weight, member.n_served / member.weight

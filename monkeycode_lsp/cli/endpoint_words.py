"""What an examination of an endpoint means, in the user's words: each fault with the setting, or the switch, that mends it."""

from __future__ import annotations

from collections.abc import Iterator

from monkeycode_lsp.cli.finding import Finding, State
from monkeycode_lsp.engines.remote.examination.examining import Examination, Line
from monkeycode_lsp.engines.remote.examination.filling import Filling
from monkeycode_lsp.engines.remote.examination.pace import Pace

_CLOCK_S = 60.0
_CERTIFICATE_DAYS = 14
_MINUTE_S = 60.0
_HOUR_S = 3600.0

_CHOOSE = "Choose a code model that can."
_CHOOSE_OR_TELL = "Choose a code model that can, or set `template` if you know its markers."
_BUFFERING = "switch its buffering off (nginx: `proxy_buffering off;`)."
_PREFIX_CACHE = {
    "vllm": "Start vLLM with --enable-prefix-caching.",
    "sglang": "Start SGLang without --disable-radix-cache.",
    "tensorrt-llm": "Switch on enable_block_reuse in its kv_cache_config.",
    "llama-server": "Give it more slots (--parallel): others push your prompt out.",
}
_PREFIX_CACHE_ELSEWHERE = "Switch on prefix caching at the server; a balancer before it has to keep each client with one server."


def findings(subject: str, found: Examination, *, role: str, deadline_ms: int) -> Iterator[Finding]:
    """Of one that completes: who answers first, then what there is to say of the rest."""
    yield _who(subject, found, role)
    if found.pace is not None:
        yield _speed(subject, found.pace, deadline_ms)
        yield from _delivery(subject, found.api, found.pace)
    elif found.error is not None:
        yield Finding(f"{subject}: speed", State.WARNING, f"could not be measured: {found.error.message}", found.error.remedy)
    else:
        words = "its answers took too long to measure"
        yield Finding(f"{subject}: speed", State.WARNING, words, "Use a smaller model or a faster machine; or others keep it busy now.")
    if found.stops == "none":
        yield Finding(f"{subject}: stop strings", State.NOTE, "it takes none; they are applied on this side")
    if found.line is not None:
        yield from _line(subject, found.line)


def _who(subject: str, found: Examination, role: str) -> Finding:
    name = found.model or "it"
    parts = [f"{name} answers by the API {found.api}", role]
    state, remedy = State.OK, ""
    if found.filling is not None:
        words, state, remedy = _fills(found, found.filling)
        parts.append(words)
    parts.append(f"window of {found.context_tokens} tokens" if found.context_tokens else "its window is not told")
    parts.append("takes four stop strings, the rest is applied on this side" if found.stops == "four" else "")
    return Finding(subject, state, "; ".join(filter(None, parts)), remedy)


def _fills(found: Examination, filling: Filling) -> tuple[str, State, str]:
    """Whether it fills in the middle."""
    family = found.asked_as
    if found.api == "chat":
        how = "it only chats, which is slower and less good"
        return how, State.WARNING, "A server with an OpenAI-compatible /v1/completions and a code model does better."
    if filling.fills:
        return (f"fills in the middle{_markers(found)}" if family else "fills in the middle by itself"), State.OK, ""
    if found.family_from == "setting":
        words = f"does not fill in the middle with the markers of the setting `template`{_why(filling)}"
        return words, State.WARNING, "Correct `template`, or set it to auto."
    if family is not None:
        words = f"fills in the middle poorly{_markers(found)} ({filling.score:.0%} of what was expected)"
        return words, State.WARNING, "Choose a model that was trained on code."
    words = f"cannot fill in the middle{_why(filling)}: it sees only the text before the cursor"
    return words, State.WARNING, _CHOOSE_OR_TELL if found.takes_markers else _CHOOSE


def _markers(found: Examination) -> str:
    family = found.asked_as
    if family is None or found.family is None:
        return ""
    by = {"setting": "set by you", "name": "known by its name", "server": "told by the server"}[found.family_from or "server"]
    usual = f" instead of {found.family.order}" if family.order != found.family.order else ""
    return f" with the markers of {family.name} ({by}) in the order {family.order}{usual}"


def _why(filling: Filling) -> str:
    if any(attempt.shows_markers for attempt in filling.attempts):
        return " (markers come back as text)"
    if all(attempt.is_silent for attempt in filling.attempts):
        return " (it says nothing)"
    return ""


def _speed(subject: str, pace: Pace, deadline_ms: int) -> Finding:
    words = f"first text after {pace.first_ms:.0f} ms for a new prompt, after {pace.warm_first_ms:.0f} ms for one letter more"
    if pace.tokens_per_second is not None:
        words += f"; {pace.tokens_per_second:.0f} tokens a second"
    if pace.reused_tokens and pace.prompt_tokens:
        words += f"; {pace.reused_tokens} of {pace.prompt_tokens} tokens of the prompt were not read again"
    if pace.warm_first_ms > deadline_ms:
        remedy = "Use a smaller model or a faster machine, lower `context.prefixTokens`, or raise `completion.deadlineMs`."
        return Finding(f"{subject}: speed", State.WARNING, f"{words}: later than `completion.deadlineMs`", remedy)
    return Finding(f"{subject}: speed", State.OK, words)


def _delivery(subject: str, api: str, pace: Pace) -> Iterator[Finding]:
    if pace.reuses is False:
        words = "the server reads each prompt anew as a whole"
        yield Finding(f"{subject}: prefix cache", State.WARNING, words, _PREFIX_CACHE.get(api, _PREFIX_CACHE_ELSEWHERE))
    if pace.delivery == "held back":
        words = "a proxy in between holds back the stream: all of it comes at the same instant"
        yield Finding(f"{subject}: stream", State.WARNING, words, f"At the proxy, {_BUFFERING}")
    if pace.delivery == "one piece":
        words = "each answer comes in one piece"
        yield Finding(f"{subject}: stream", State.WARNING, words, f"Let the server stream; if a proxy stands in between, {_BUFFERING}")


def _line(subject: str, line: Line) -> Iterator[Finding]:
    if line.keeps is False:
        words = "each request needs a new connection"
        yield Finding(f"{subject}: connection", State.NOTE, words, "Switch on keep-alive at the server, or at the proxy before it.")
    if line.certificate_days is not None and line.certificate_days < _CERTIFICATE_DAYS:
        words = f"the server's certificate ends in {line.certificate_days:.0f} days"
        yield Finding(f"{subject}: certificate", State.WARNING, words, "Renew it at the server.")
    if line.clock_s is not None and abs(line.clock_s) > _CLOCK_S:
        words = f"the server's clock is {_span(abs(line.clock_s))} {'ahead of' if line.clock_s > 0 else 'behind'} this machine's"
        remedy = "Set the one that is wrong: keys that expire, certificates and caches rely on it."
        yield Finding(f"{subject}: clock", State.NOTE, words, remedy)


def _span(seconds: float) -> str:
    if seconds < _HOUR_S:
        return f"{seconds / _MINUTE_S:.0f} minutes"
    return f"{seconds / _HOUR_S:.1f} hours"

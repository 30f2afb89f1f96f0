"""What is asked at a window, and what of an answer is fit to be shown there."""

import msgspec
import pytest

from monkeycode_lsp import clock, config
from monkeycode_lsp.domain import Origin, Priority, Scope, Snippet, Suggestion
from monkeycode_lsp.engines.scripted import Answer, ScriptedEngine
from monkeycode_lsp.generation import Generation
from monkeycode_lsp.shaping import Shaping
from tests.unit.places import at


def shaping(**tree):
    settings, problems = config.decode(tree)
    assert not problems
    return Shaping(settings)


async def begun(shaped, window, answer):
    engine = ScriptedEngine([answer])
    request = shaped.request("file:///w/app.py", window, await engine.ready())
    return Generation(engine, request, Scope("engine", "settings", "workspace"))


async def test_of_an_answer_that_still_comes_only_whole_lines_are_fit_and_in_the_end_all_of_it():
    shaped, window = shaping(), at("def f():\n    ‸\n")
    generation = await begun(shaped, window, Answer(chunks=("a = 1\n    b = 2", ""), delay_ms=30))
    await generation.wait(clock.now() + 5, lambda: bool(generation.text))
    assert generation.running
    assert shaped.cleaned(generation).text == "a = 1"
    await generation.wait(clock.now() + 5)
    assert shaped.cleaned(generation).text == "a = 1\n    b = 2"


async def test_what_was_cleaned_for_one_answer_is_not_given_for_another_or_for_another_way_to_ask():
    shaped = shaping()
    one = await begun(shaped, at("x = f(‸)"), Answer(chunks=("a, b)",)))
    other = await begun(shaped, at("y = ‸"), Answer(chunks=("c + d",)))
    for generation in (one, other):
        await generation.wait(clock.now() + 5)
    for _ in range(2):
        assert [shaped.cleaned(generation).text for generation in (one, other)] == ["a, b", "c + d"]
        assert shaped.cleaned(other, explicit=True).text == "c + d"


@pytest.mark.parametrize("origin", [Origin.MEMORY, Origin.DISK, Origin.SHARED])
@pytest.mark.parametrize(
    ("marked", "kept", "fit"),
    [
        ("x = f(‸)", "a)", "a"),
        ("f = f(‸", "a)", "a)"),
        ("def f():\n    a = 1\n    ‸\n    return a\n", "a += 1\n    return a", "a += 1"),
        ("<div>‸</div>", "hi</div>", "hi"),
        ("x = g(‸)", ")", None),
    ],
)
def test_what_is_remembered_is_cleaned_for_the_text_after_the_cursor_as_it_is_now(origin, marked, kept, fit):
    language = "html" if marked.startswith("<") else "python"
    found = shaping().fitted(Suggestion(kept, origin=origin), at(marked, language=language), explicit=False)
    assert (found.text if found else None) == fit
    assert found is None or found.origin is origin


def test_what_is_typed_through_stays_as_it_is():
    kept = Suggestion("a)", origin=Origin.TYPED_THROUGH)
    assert shaping().fitted(kept, at("x = f(‸)"), explicit=False) == kept


def changed(settings):
    """Each setting of these parts with another value, one at a time."""
    other = {
        "template": "starcoder2",
        "multiline": "never",
        "temperature": 0.5,
        "top_p": 0.5,
        "min_p": 0.2,
        "repeat_penalty": 1.5,
        "silence": "off",
        "disabled_languages": ("c",),
        "disabled_globs": ("x",),
    }
    yield "template", msgspec.structs.replace(settings, template=other["template"])
    for part in ("completion", "context"):
        before = getattr(settings, part)
        for field in msgspec.structs.fields(before):
            value = getattr(before, field.name)
            new = other.get(field.name, not value if isinstance(value, bool) else value + 1 if isinstance(value, int | float) else None)
            assert new is not None, f"say what else {field.name} could be"
            yield f"{part}.{field.name}", msgspec.structs.replace(settings, **{part: msgspec.structs.replace(before, **{field.name: new})})


def test_every_setting_that_could_shape_an_answer_is_in_its_fingerprint():
    settings = config.Config()
    known = {"default": Shaping(settings).fingerprint}
    for name, other in changed(settings):
        known[name] = Shaping(other).fingerprint
    assert len(set(known.values())) == len(known)
    assert Shaping(config.Config()).fingerprint == known["default"]


@pytest.mark.parametrize(("background", "priority"), [(True, Priority.LOOK_AHEAD), (False, Priority.INTERACTIVE)])
async def test_what_nobody_asked_for_yet_is_less_urgent(background, priority):
    model = await ScriptedEngine([]).ready()
    prompt = shaping().request("file:///w/app.py", at("x = ‸"), model, background=background, draft="1").prompt
    assert (prompt.priority, prompt.draft, prompt.session) == (priority, "1", "file:///w/app.py")


SECRET = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
KEYED = f'TOKEN = "{SECRET}"\nheaders = {{"Authorization": ‸}}\n'


async def request_for(shaped, marked, **more):
    return shaped.request("file:///w/app.py", at(marked), await ScriptedEngine([]).ready(), **more)


async def test_secrets_are_in_no_part_of_a_prompt_and_no_column_moves():
    quoted = Snippet("other.py", f"KEY = '{SECRET}'")
    request = await request_for(shaping(), KEYED, snippets=[quoted], draft=f'f"token {SECRET}"')
    prompt = request.prompt
    said = "".join(segment.text for segment in prompt.segments) + prompt.prefix + prompt.suffix + prompt.draft
    assert SECRET not in said
    assert (len(prompt.prefix), len(prompt.suffix)) == (len(request.window.prefix), len(request.window.suffix))
    assert SECRET in request.window.prefix  # stops and filters see the document as it is


async def test_what_was_hidden_comes_back_in_the_answer_also_in_pieces():
    shaped = shaping()
    request = await request_for(shaped, KEYED)
    hidden = request.prompt.prefix.split('"')[1]
    assert hidden != SECRET
    pieces = (f'"token {hidden[:9]}', hidden[9:20], f'{hidden[20:]}"')
    generation = Generation(ScriptedEngine([Answer(chunks=pieces)]), request, Scope("engine", "settings", "workspace"))
    await generation.wait(clock.now() + 5)
    assert generation.text == f'"token {SECRET}"'


async def test_redaction_can_be_switched_off_and_counts_as_another_setting():
    request = await request_for(shaping(privacy={"redactSecrets": False}), KEYED)
    assert SECRET in request.prompt.prefix
    assert shaping(privacy={"redactSecrets": False}).fingerprint != shaping().fingerprint


@pytest.mark.parametrize(("family", "is_kept"), [("qwen2.5-coder", False), ("codestral", True)])
async def test_only_where_the_suffix_is_read_first_the_one_that_the_engine_knows_stands_for_the_true_one(family, is_kept):
    shaped, model = shaping(), await ScriptedEngine([], family=family).ready()
    below = "\n" + "".join(f"total_{n} = compute(first, second)\n" for n in range(40))
    for suffix in (below, below.replace("total_30", "amount")):
        prompt = shaped.request("file:///w/app.py", at(f"x = ‸{suffix}"), model).prompt
    assert any("total_30" in segment.text for segment in prompt.segments) is is_kept
    assert any("amount" in segment.text for segment in prompt.segments) is not is_kept


TOKEN = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


def said(request):
    return "".join(segment.text for segment in request.prompt.segments)


async def test_no_path_and_no_name_in_a_prompt_has_a_secret_in_it():
    window = msgspec.structs.replace(at("x = ‸"), path=f"lib/{TOKEN}.py", repository=f"proj-{TOKEN}")
    model = await ScriptedEngine([]).ready()
    request = shaping().request("file:///w/a.py", window, model, snippets=[Snippet(f"a/{TOKEN}/b.py", "y = 1\n")])
    assert TOKEN not in said(request)
    assert ("b.py" in said(request), "y = 1" in said(request)) == (True, True)
    assert TOKEN in said(
        shaping(privacy={"redactSecrets": False}).request("file:///w/a.py", window, model, snippets=[Snippet("b.py", "y = 1")])
    )


async def test_a_suffix_that_was_kept_has_no_placeholder_that_would_not_be_restored():
    shaped, model = shaping(template="codestral"), await ScriptedEngine([]).ready()
    below = "".join(f"line_{n} = compute({n}, alpha, beta)\n" for n in range(60))
    first, second = (
        shaped.request("file:///w/a.py", at(f'x = ‸\nfirst = 1\napi_token = "{token}"\n{below}'), model)
        for token in ("kV9mQ2xW7bN5tR8pL1cZ4fH6jG0sYqE3", "Zt4Lq8Wn2PzYs6HdJ3fGa5Te0UiRb7Xv")
    )
    (old,), (new,) = first.redaction.hidden, second.redaction.hidden
    assert (old.sign in said(second), new.text in said(second)) == (False, True)

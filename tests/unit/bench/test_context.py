"""The benchmark of context: a small workspace."""

from monkeycode_lsp.bench import context


async def test_it_asks_at_new_lines_and_finds_what_the_names_mean():
    report = await context.run(120, 5)
    assert (report.files, report.asks, report.new_line_ms.n, report.typing_ms.n) == (120, 5, 5, 5)
    figures = {figure.name: figure.value for part in report.parts for figure in part.figures}
    assert figures["snippets in a prompt"] > 1
    assert all(value > 0 for value in figures.values())


def test_the_workspace_is_the_same_each_time(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        context.fill(tmp_path / name, 3)
    texts = [[path.read_text() for path in sorted((tmp_path / name).rglob("*.py"))] for name in ("a", "b")]
    assert texts[0] == texts[1]
    assert len(texts[0]) == 3
    for text in texts[0]:
        compile(text, "module.py", "exec")

"""A model whose next token depends on every token that its cache holds, so that a wrong reuse is a wrong answer."""

from __future__ import annotations

import msgspec

from monkeycode_lsp.engines.local.decoder import GenerationError

CONTROLS = {"<pre>": 300, "<mid>": 301, "<bos>": 302}
END = 400


def checksum(cells):
    """The digit that follows these tokens."""
    return 48 + sum(n * cell for n, cell in enumerate(cells, 1)) % 10


class ToySampler:
    def __init__(self, runtime, ask):
        self._runtime = runtime
        self._temperature = ask.sampling.temperature
        self._n_drawn = 0

    def draw(self, row, among=None):
        cells = self._runtime.after[row]
        self._n_drawn += 1
        # At a temperature the draw depends on its number as well: drafts must not change how often it is drawn.
        token = self._runtime.says(cells) if not self._temperature else 48 + (self._runtime.says(cells) + self._n_drawn) % 10
        if among is not None and token not in among:
            token = among[0]
        return token, -0.25

    def close(self):
        self._runtime.n_open -= 1


class ToyRuntime:
    """A token per byte.  Checks that every batch fits what the caches hold."""

    def __init__(
        self,
        *,
        n_sequences=4,
        context_tokens=4096,
        batch_tokens=128,
        bos=None,
        says=checksum,
        can_cut=True,
        words=(),
        script=(),
    ):
        self.n_sequences = n_sequences
        self.context_tokens = context_tokens
        self.batch_tokens = batch_tokens
        self.bos = bos
        self.filler = 0
        self.cells = [[] for _ in range(n_sequences)]
        self.after = {}
        self.batches = []
        self.n_open = 0
        self.n_saved = 0
        self.fails = False
        self.during = lambda rows: None
        """Called in the middle of a batch."""
        self._can_cut = can_cut
        self._words = words
        self._says = says
        self._script = list(script)

    def says(self, cells):
        return self._script.pop(0) if self._script else self._says(cells)

    def tokenize(self, text):
        for word in self._words:
            if word in text:
                before, _, after = text.partition(word)
                return [*self.tokenize(before), CONTROLS[word], *self.tokenize(after)]
        return list(text.encode())

    def control(self, text):
        if text not in CONTROLS:
            raise GenerationError("template", f"no {text}")
        return CONTROLS[text]

    def piece(self, token):
        return bytes([token]) if token < 256 else {500: b"\xf0\x9f", 501: b"\x98", 502: b"\x80"}.get(token, b"")

    def ends(self, token):
        return token == END or token in CONTROLS.values()

    def fitting(self, text):
        return [text[0]]

    def decode(self, rows, should_stop):
        assert 0 < len(rows) <= self.batch_tokens
        self.batches.append([(row.sequence, row.position) for row in rows])
        if self.fails:
            raise GenerationError("decode", "broken")
        self.after = {}
        for n, row in enumerate(rows):
            cells = self.cells[row.sequence]
            assert row.position == len(cells) < self.context_tokens
            cells.append(row.token)
            if row.wanted:
                self.after[n] = tuple(cells)
        self.during(rows)
        return not should_stop()

    def keep(self, sequence, n_tokens):
        if n_tokens and not self._can_cut and n_tokens < len(self.cells[sequence]):
            self.cells[sequence] = []
            return False
        del self.cells[sequence][n_tokens:]
        return True

    def sampler(self, ask):
        if ask.grammar == "bad":
            raise GenerationError("grammar", "bad")
        self.n_open += 1
        return ToySampler(self, ask)

    def save(self, sequence):
        self.n_saved += 1
        return msgspec.json.encode(self.cells[sequence])

    def restore(self, sequence, state):
        try:
            self.cells[sequence] = msgspec.json.decode(state)
        except msgspec.DecodeError:
            self.cells[sequence] = []
            return False
        return True

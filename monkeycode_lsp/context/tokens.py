"""An estimate of token counts, for budgets where the engine's own tokenizer is not at hand (pure).

Code averages a little over three ASCII characters a token; most other scripts take about one token
or a little more for each character.
"""

from __future__ import annotations

ASCII_PER_TOKEN = 3.2
TOKENS_PER_OTHER = 1.2


def estimate(text: str) -> float:
    """Tokens that `text` will probably take."""
    if text.isascii():
        return len(text) / ASCII_PER_TOKEN
    n_ascii = len(text.encode("ascii", "ignore"))
    return n_ascii / ASCII_PER_TOKEN + (len(text) - n_ascii) * TOKENS_PER_OTHER


def fitting(text: str, budget: float, *, from_end: bool) -> str:
    """The longest head (or tail) of `text` that fits the budget."""
    if estimate(text) <= budget:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        part = text[len(text) - middle :] if from_end else text[:middle]
        if estimate(part) <= budget:
            low = middle
        else:
            high = middle - 1
    return text[len(text) - low :] if from_end else text[:low]

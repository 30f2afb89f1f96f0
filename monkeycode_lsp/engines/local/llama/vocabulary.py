"""A model's tokens: text to tokens and back."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import llama_cpp
import numpy as np
import numpy.typing as npt

from monkeycode_lsp.engines.local.batch.healing import Pieces
from monkeycode_lsp.engines.local.decoder import GenerationError
from monkeycode_lsp.prompt import Markers

_MARKERS = {
    "prefix": llama_cpp.llama_vocab_fim_pre,
    "suffix": llama_cpp.llama_vocab_fim_suf,
    "middle": llama_cpp.llama_vocab_fim_mid,
    "pad": llama_cpp.llama_vocab_fim_pad,
    "repository": llama_cpp.llama_vocab_fim_rep,
    "separator": llama_cpp.llama_vocab_fim_sep,
}
_PIECE_BYTES = 128
"""Longer pieces take a second call."""


class Vocabulary:
    """See `runtime.Vocabulary`."""

    def __init__(self, model: Any) -> None:
        # The mutable state is the control tokens found so far, which grow in `control` only, and a buffer
        # that nothing outlives `piece` in.
        self.handle = llama_cpp.llama_model_get_vocab(model)
        self.n_tokens = int(llama_cpp.llama_vocab_n_tokens(self.handle))
        bos, eos = int(llama_cpp.llama_vocab_bos(self.handle)), int(llama_cpp.llama_vocab_eos(self.handle))
        self.bos = bos if bos >= 0 and llama_cpp.llama_vocab_get_add_bos(self.handle) else None
        self.filler = next((token for token in (bos, eos) if token >= 0), 0)
        found = {name: int(find(self.handle)) for name, find in _MARKERS.items()}
        texts = {name: llama_cpp.llama_vocab_get_text(self.handle, token).decode("utf-8") for name, token in found.items() if token >= 0}
        self.markers = Markers(**texts)
        self._controls = {text: found[name] for name, text in texts.items()}
        self._buffer = ctypes.create_string_buffer(_PIECE_BYTES)
        # Some tokenizers put a blank before every text.  Behind a line end they do not.
        line_end = self._tokenize("\n", parse_special=False)
        self._line_end = line_end if b"".join(map(self.piece, line_end)) != b"\n" else []

    def tokenize(self, text: str) -> list[int]:
        """See `runtime.Vocabulary`."""
        if self._line_end and text:
            tokens = self._tokenize("\n" + text, parse_special=False)
            n_lead = len(self._line_end)
            if tokens[:n_lead] == self._line_end:
                return tokens[n_lead:]
        return self._tokenize(text, parse_special=False)

    def control(self, text: str) -> int:
        """See `runtime.Vocabulary`."""
        if text not in self._controls:
            tokens = self._tokenize(text, parse_special=True)
            if len(tokens) != 1 or not self._is_special(tokens[0]):
                raise GenerationError("template", f"The model's vocabulary has no control token {text!r}.")
            self._controls[text] = tokens[0]
        return self._controls[text]

    def piece(self, token: int) -> bytes:
        """See `runtime.Vocabulary`."""
        buffer = self._buffer
        n_bytes = llama_cpp.llama_token_to_piece(self.handle, token, buffer, _PIECE_BYTES, 0, False)  # noqa: FBT003 - positional only
        if n_bytes < 0:
            buffer = ctypes.create_string_buffer(-n_bytes)
            n_bytes = llama_cpp.llama_token_to_piece(self.handle, token, buffer, -n_bytes, 0, False)  # noqa: FBT003 - positional only
        return ctypes.string_at(buffer, n_bytes)

    def ends(self, token: int) -> bool:
        """See `runtime.Vocabulary`."""
        return bool(llama_cpp.llama_vocab_is_eog(self.handle, token) or llama_cpp.llama_vocab_is_control(self.handle, token))

    def fitting(self, text: bytes) -> Sequence[int]:
        """See `runtime.Vocabulary`."""
        return self._pieces.fitting(text)

    @cached_property
    def silent(self) -> npt.NDArray[np.bool_]:
        """Which tokens are control tokens that do not end a text: no grammar can mean them."""
        controls, ends = llama_cpp.llama_vocab_is_control, llama_cpp.llama_vocab_is_eog
        told = (controls(self.handle, token) and not ends(self.handle, token) for token in range(self.n_tokens))
        return np.fromiter(told, dtype=np.bool_, count=self.n_tokens)

    @cached_property
    def _pieces(self) -> Pieces:
        return Pieces([self.piece(token) for token in range(self.n_tokens)])

    def _tokenize(self, text: str, *, parse_special: bool) -> list[int]:
        # A lone surrogate would be a C++ exception, and so the end of the process.
        data = text.encode("utf-8", errors="replace")
        size = len(data) + 8
        buffer = (llama_cpp.llama_token * size)()
        n_tokens = int(llama_cpp.llama_tokenize(self.handle, data, len(data), buffer, size, False, parse_special))  # noqa: FBT003 - positional only
        return list(buffer[: max(n_tokens, 0)])

    def _is_special(self, token: int) -> bool:
        special = llama_cpp.LLAMA_TOKEN_ATTR_CONTROL | llama_cpp.LLAMA_TOKEN_ATTR_USER_DEFINED
        return bool(llama_cpp.llama_vocab_get_attr(self.handle, token) & special)

"""Reads the header of a GGUF file: what the model is and how it was quantized.  Never reads a tensor.

A file that is not GGUF, or is cut off, is refused with a sentence that says so.
"""

from __future__ import annotations

import math
import mmap
import struct
from pathlib import Path

import msgspec

from monkeycode_lsp.errors import ModelError

_MAGIC = b"GGUF"
_UINT32, _STRING, _ARRAY, _UINT64 = 4, 8, 9, 10
_FORMATS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_SIZES = {kind: struct.calcsize(form) for kind, form in _FORMATS.items()}
_MAX_COUNT = 1 << 24
"""More keys, tensors or dimensions than this are a broken file, not a model."""

_MAX_DIMENSIONS = 4

_FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K", 11: "Q3_K_S", 12: "Q3_K_M",
    13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S", 17: "Q5_K_M", 18: "Q6_K", 19: "IQ2_XXS", 20: "IQ2_XS",
    21: "Q2_K_S", 22: "IQ3_XS", 23: "IQ3_XXS", 24: "IQ1_S", 25: "IQ4_NL", 26: "IQ3_S", 27: "IQ3_M", 28: "IQ2_S",
    29: "IQ2_M", 30: "IQ4_XS", 31: "IQ1_M", 32: "BF16",
}  # fmt: skip

_TENSOR_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K",
    14: "Q6_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS",
    29: "IQ1_M", 30: "BF16",
}  # fmt: skip

_FIM_KEYS = {
    "prefix": ("fim_pre_token_id", "prefix_token_id"),
    "suffix": ("fim_suf_token_id", "suffix_token_id"),
    "middle": ("fim_mid_token_id", "middle_token_id"),
    "pad": ("fim_pad_token_id",),
    "repository": ("fim_rep_token_id",),
    "separator": ("fim_sep_token_id",),
}

Scalar = str | int | float | bool


class Header(msgspec.Struct, frozen=True):
    """What the header says.  Empty text and None: it does not say."""

    version: int
    architecture: str
    name: str
    size: str
    """`0.5B`"""
    file_type: str
    """`Q4_K_M`"""
    licence: str
    context_tokens: int | None
    n_layers: int | None
    tokenizer: str
    """Kind and pre-tokenizer: `gpt2/qwen2`."""
    fim: dict[str, int]
    """Ids of the insert tokens by role (prefix, suffix, middle, pad, repository, separator) as far as the file states
    them.  Many files of models that can insert state none."""
    n_tensors: int
    bytes: int
    kind: str = ""
    """`model`, `adapter`; older files do not say."""
    elements: dict[str, int] = {}
    """How many numbers are kept in each type: `{"Q5_0": …, "F32": …}`.  Without those of a split file's other parts."""


def read(path: Path) -> Header:
    """The header of `path`; a `ModelError` when it is not a whole GGUF file."""
    with _mapped(path) as data:
        cursor = _Cursor(data, path)
        version, n_tensors, values = cursor.metadata()
        elements = cursor.tensors(n_tensors, values)
        size = len(data)
    architecture = str(values.get("general.architecture", ""))
    return Header(
        version=version,
        architecture=architecture,
        name=str(values.get("general.name", "")),
        size=str(values.get("general.size_label", "")),
        file_type=_FILE_TYPES.get(_integer(values, "general.file_type", -1), ""),
        licence=str(values.get("general.license", "")),
        context_tokens=_integer(values, f"{architecture}.context_length", 0) or None,
        n_layers=_integer(values, f"{architecture}.block_count", 0) or None,
        tokenizer="/".join(str(values[key]) for key in ("tokenizer.ggml.model", "tokenizer.ggml.pre") if key in values),
        fim=_fim(values),
        n_tensors=n_tensors,
        bytes=size,
        kind=str(values.get("general.type", "")),
        elements=elements,
    )


class _Mapped:
    """A file's bytes, without reading them all."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        try:
            self.data = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> mmap.mmap:
        return self.data

    def __exit__(self, *_: object) -> None:
        self.data.close()
        self._file.close()


def _mapped(path: Path) -> _Mapped:
    if path.is_dir():
        raise ModelError(f"{path} is a folder, not a model file.", remedy="Name the .gguf file inside it.")
    if path.exists() and not path.is_file():  # opening it may wait for ever
        raise ModelError(f"{path} is a pipe or a device, not a model file.")
    try:
        return _Mapped(path)
    except FileNotFoundError as exc:
        raise ModelError(f"The model file {path} does not exist.") from exc
    except ValueError as exc:  # an empty file cannot be mapped
        raise ModelError(f"{path} is empty, not a GGUF model.", remedy="Delete it and pull the model again.") from exc
    except OSError as exc:
        raise ModelError(f"The model file {path} cannot be read: {exc.strerror or exc}.") from exc


class _Cursor:
    """Walks the header.  The mutable state is `offset`; every read moves it on or raises `ModelError`."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self.data = data
        self.path = path
        self.offset = 0

    def metadata(self) -> tuple[int, int, dict[str, Scalar]]:
        """Version, number of tensors, and single values.  Leaves the cursor at the tensors' table."""
        if self.data[:4] != _MAGIC:
            raise ModelError(
                f"{self.path} is not a GGUF model: it begins with {self.data[:4]!r}.",
                remedy="Only GGUF files can be used; `monkeycode model list` shows some.",
            )
        self.offset = 4
        version = self.number(_UINT32)
        if version not in {2, 3}:
            raise ModelError(
                f"{self.path} is GGUF version {version}; versions 2 and 3 can be read.", remedy="Pull a newer file of this model."
            )
        n_tensors, n_values = self.count(), self.count()
        values: dict[str, Scalar] = {}
        for _ in range(n_values):
            key = self.string().decode("utf-8", "replace")
            kind = self.number(_UINT32)
            if kind == _ARRAY:
                self.skip_array()
            else:
                values[key] = self.string().decode("utf-8", "replace") if kind == _STRING else self.scalar(kind)
        return version, n_tensors, values

    def tensors(self, n_tensors: int, values: dict[str, Scalar]) -> dict[str, int]:
        """Elements by type.  Refuses a file that ends before its last tensor begins."""
        last = 0
        elements: dict[str, int] = {}
        for _ in range(n_tensors):
            self.string()
            n_dimensions = self.number(_UINT32)
            if n_dimensions > _MAX_DIMENSIONS:
                raise ModelError(f"{self.path} has a damaged header: {n_dimensions} dimensions.", remedy="Pull the model again.")
            n_elements = math.prod(self.number(_UINT64) for _ in range(n_dimensions))
            kind = self.number(_UINT32)
            name = _TENSOR_TYPES.get(kind, f"type {kind}")
            elements[name] = elements.get(name, 0) + n_elements
            last = max(last, self.number(_UINT64))
        alignment = max(_integer(values, "general.alignment", 32), 1)
        start = -(-self.offset // alignment) * alignment
        if n_tensors and start + last >= len(self.data):
            raise self.cut_off()
        return elements

    def number(self, kind: int) -> int:
        return int(self.scalar(kind))

    def scalar(self, kind: int) -> int | float | bool:
        form = _FORMATS.get(kind)
        if form is None:
            raise ModelError(f"{self.path} has a damaged header: value type {kind} does not exist.", remedy="Pull the model again.")
        start = self.offset
        self.skip(_SIZES[kind])
        value: int | float | bool = struct.unpack_from(form, self.data, start)[0]
        return value

    def count(self) -> int:
        value = self.number(_UINT64)
        if value > _MAX_COUNT:
            raise ModelError(f"{self.path} has a damaged header: {value} entries.", remedy="Pull the model again.")
        return value

    def string(self) -> bytes:
        size = self.number(_UINT64)
        start = self.offset
        self.skip(size)
        return self.data[start : start + size]

    def skip_array(self) -> None:
        kind, count = self.number(_UINT32), self.count()
        if kind == _STRING:
            self.skip_strings(count)
        elif kind in _SIZES:
            self.skip(_SIZES[kind] * count)
        else:
            raise ModelError(f"{self.path} has a damaged header: an array of type {kind}.", remedy="Pull the model again.")

    def skip_strings(self, count: int) -> None:
        # A vocabulary has hundreds of thousands of strings: this loop is most of the time of a read.
        unpack, data, offset, end = struct.Struct("<Q").unpack_from, self.data, self.offset, len(self.data) - 8
        for _ in range(count):
            if offset > end:
                raise self.cut_off()
            offset += 8 + unpack(data, offset)[0]
        self.offset = offset
        self.skip(0)

    def skip(self, size: int) -> None:
        self.offset += size
        if self.offset > len(self.data):
            raise self.cut_off()

    def cut_off(self) -> ModelError:
        return ModelError(
            f"{self.path} is cut off: it has {len(self.data)} bytes and should have more.", remedy="Delete it and pull the model again."
        )


def _integer(values: dict[str, Scalar], key: str, default: int) -> int:
    value = values.get(key, default)
    return value if isinstance(value, int) else default


def _fim(values: dict[str, Scalar]) -> dict[str, int]:
    found: dict[str, int] = {}
    for role, keys in _FIM_KEYS.items():
        for key in keys:
            token = values.get(f"tokenizer.ggml.{key}")
            if isinstance(token, int):
                found.setdefault(role, token)
    return found

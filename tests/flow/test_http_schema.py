"""The OpenAPI document and the server agree: schemathesis asks, in valid and in invalid ways."""

from __future__ import annotations

import json

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection

import tests.fuzz.formats  # noqa: F401 -- makes our formats known
import yester
from tests.serving import serving
from yester.faces.http.table import ENDPOINTS, EVENTS, make_document

# Whether something invalid was refused: an empty object or a number for a list is nothing one could
# see in a query, and this check does not always know that. `make api` has it, with fixed cases.
UNSURE = negative_data_rejection
EXAMPLES = 2  # of each endpoint; `make api` has many more


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    home = tmp_path_factory.mktemp("schema") / "memory"
    with yester.open(home) as memory:
        memory.add([
            {"ref": "1", "project": "shop", "text": "Orders keep UTC", "session": "aaaaaa"},
            {"ref": "2", "project": "shop", "text": "never", "kind": "prompt", "session": "aaaaaa"},
            {"ref": "3", "kind": "memory", "text": "British spelling", "type": "preference"},
        ])  # fmt: skip
    with serving(home) as found:
        yield found
        assert found.failures == []


@pytest.mark.requirement("DEL-07")
def test_requests_made_from_the_document_are_answered_as_it_says(api):
    # The token is sent with every one: what happens without it has tests of its own.
    schema = schemathesis.openapi.from_dict(make_document(ENDPOINTS) | {"security": []})
    for endpoint in ENDPOINTS:
        if endpoint.content == EVENTS:  # it never ends
            continue
        operation = schema[endpoint.path][endpoint.method]
        modes = [GenerationMode.POSITIVE]
        if endpoint.other_parameters or endpoint.path_parameters:
            modes.append(GenerationMode.NEGATIVE)

        @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), database=None)
        @given(case=st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in modes)))
        def check(case):
            sent = {"Authorization": f"Bearer {api.token}"}
            case.call_and_validate(
                base_url=f"http://{api.host}", headers=sent, excluded_checks=[UNSURE]
            )

        check()


def test_the_document_is_served_as_it_is_made(api):
    assert api.get("/api/openapi.json") == json.loads(json.dumps(make_document(ENDPOINTS)))

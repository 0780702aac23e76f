"""Tests of the running server against its OpenAPI document, by valid and invalid requests that schemathesis generates.

No 5xx, no answer that breaks its schema, no status that is not described, nothing invalid accepted, nothing valid refused. Its phase
"coverage" goes through the description, bound by bound, some 1,700 requests. Random ones find something by the hundred of
each operation only: that longer run, with another seed each time, is described in docs/reference/api.md.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from account_store.plans import load_current_plans
from catalog_api.description import build_description
from catalog_api.route_declaration import list_declared_routes
from catalog_api.routes import ROUTES
from tests.conftest import ROOT
from tests.contract.stream_callers import account_of
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.contract.conftest import Api

EXAMPLES = 3
"""Ways along the links from answer to question. A number, not a time: a busy machine must not leave operations out."""
PHASES = "examples,coverage,stateful"


@pytest.fixture
def program() -> str:
    return str(Path(sys.executable).with_name("schemathesis"))


@pytest.mark.slow
def test_generated_requests_get_described_answers(on_sqlite: Api, program: str, tmp_path: Path) -> None:
    caller = on_sqlite.as_caller()
    on_sqlite.accounts.set_card(account_of(caller), has_card=True)
    command = [
        program,
        "run",
        f"{on_sqlite.base}/v1/openapi.json",
        "--header",
        f"x-api-key: {caller.key}",
        "--checks",
        "all",
    ]
    limits = ["--seed", "1", "--max-examples", str(EXAMPLES), "--phases", PHASES, "--continue-on-failure", "--generation-database", "none"]
    # Links that it infers by names would ask for an ISRC of 71; those that the description names are followed.
    (tmp_path / "schemathesis.toml").write_text("[phases.stateful.inference]\nalgorithms = []\n")
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "tests.contract.schemathesis_hooks", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, *limits],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        timeout=PATIENCE_SECONDS,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert f"Tested: {len(list_declared_routes(ROUTES))}\n" in done.stdout, done.stdout[-2000:]


def test_patterns_mean_the_same_to_callers_as_here() -> None:
    """Require patterns without class escapes: blanks, digits and letters differ between Python and JSON Schema.

    The server once refused U+001C, which was a valid title by the description.
    """
    document = build_description(list_declared_routes(ROUTES), load_current_plans())
    listed = [pattern for operations in document["paths"].values() for pattern in patterns(operations)]
    assert len(listed) > 20
    assert [pattern for pattern in listed if re.search(r"\\[sSwWdDbB]", pattern)] == []


def patterns(part: object) -> Iterator[str]:
    """Yield all patterns below a part of the description. Headers are left out, because their values are ASCII."""
    if isinstance(part, dict):
        if part.get("in") == "header":
            return
        if isinstance(part.get("pattern"), str):
            yield part["pattern"]
        part = list(part.values())
    if isinstance(part, list):
        for one in part:
            yield from patterns(one)

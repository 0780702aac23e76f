"""Tests of the reference page: every printed request succeeds as it stands, and the first steps lead to what they promise."""

from __future__ import annotations

import contextlib
import html
import io
import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from catalog_api.reference.sample_requests import MADE_IDS, SAMPLE_REQUESTS
from tests.contract.conftest import RECEIVERS, Api
from tests.contract.sample_recording import make_clip, prepare
from tests.contract.stream_callers import with_card
from tests.ports import free_port
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.parametrize("server", ["on_sqlite"], indirect=True)
_PRINTED = re.compile(r'<pre tabindex="0" data-language="(\w+)"(?: data-(operation|step)="(\w+)")?><code>(.*?)</code></pre>', re.DOTALL)
_ID = re.compile(r"""['"]?\bid['"]?: ?['"]?([0-9a-f-]+)""")


def read_printed(api: Api) -> dict[tuple[str, str], str]:
    """Return the printed requests by language and operation or step."""
    page = api.get("/v1/docs", key=None).text
    return {
        (language, f"first {name}" if kind == "step" else name): html.unescape(text)
        for language, kind, name, text in _PRINTED.findall(page)
    }


def test_page_prints_every_operation_in_three_languages_with_answers_of_the_live_catalog(server: Api) -> None:
    page = server.get("/v1/docs", key=None).text
    printed = read_printed(server)
    for language in ("curl", "Python", "JavaScript"):
        assert {name for kind, name in printed if kind == language} >= set(SAMPLE_REQUESTS), language
    live = re.findall(r'Answer of the live catalog</summary><pre tabindex="0" data-answer="(\w+)">', page)
    assert {"search", "track_by_isrc", "links", "browse", "release", "resolve", "resolve_artists", "isrc_conflicts", "changes"} <= set(live)
    assert "Midnight Running" in page
    assert 'id="header-X-Catalog-Build"' in page
    assert all(word in page for word in ("from 1, to 100", "at most 500 characters", "at most 100 items"))


class Runner:
    """Runs printed requests of one language one after the other, with the ids that earlier ones made."""

    def __init__(self, place: Path, caller: Api) -> None:
        self.place, self.caller = place, caller
        self.environment = {"BASE_URL": caller.base, "API_KEY": caller.key}
        (place / "clip.wav").write_bytes(make_clip())

    def run_all(self, printed: dict[tuple[str, str], str], language: str, run: Callable[[str], str]) -> None:
        known: dict[str, str] = {}
        for operation in SAMPLE_REQUESTS:
            output = run(printed[language, operation])
            if operation in MADE_IDS:
                name, _ = MADE_IDS[operation]
                found = _ID.search(output)
                assert found is not None, output
                known[name] = self.environment[name.upper()] = found[1]
                prepare(self.caller, operation, known)

    def start(self, *command: str, text: str | None = None) -> str:
        done = subprocess.run(
            command, input=text, cwd=self.place, env={**os.environ, **self.environment}, capture_output=True, text=True, check=False,
            timeout=PATIENCE_SECONDS,
        )  # fmt: skip
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.mark.slow
def test_every_printed_command_of_curl_succeeds(server: Api, tmp_path: Path) -> None:
    runner = Runner(tmp_path, with_card(server))
    runner.run_all(read_printed(server), "curl", lambda text: runner.start("bash", "-euo", "pipefail", text=text))


@pytest.mark.slow
def test_every_printed_python_program_succeeds(server: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner(tmp_path, with_card(server))
    monkeypatch.chdir(tmp_path)

    def run(text: str) -> str:
        for name, value in runner.environment.items():
            monkeypatch.setenv(name, value)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(text, "printed", "exec"), {})  # noqa: S102
        return output.getvalue()

    runner.run_all(read_printed(server), "Python", run)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="no Node is installed")
def test_every_printed_javascript_module_succeeds(server: Api, tmp_path: Path) -> None:
    runner = Runner(tmp_path, with_card(server))
    runner.run_all(read_printed(server), "JavaScript", lambda text: runner.start("node", "--input-type=module", text=text))


@pytest.mark.slow
def test_first_steps_lead_to_a_search_a_job_an_identification_and_a_received_event(server: Api, tmp_path: Path) -> None:
    caller, port = server.as_caller(), free_port()
    runner, printed = Runner(tmp_path, caller), read_printed(server)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "key").write_text(caller.key)
    # The only differences: the test's own ports, and the address inside the network that its server may call.
    setup = printed["curl", "first setup"].replace("http://127.0.0.1:8000", caller.base)
    receiver = printed["receiver", ""].replace("127.0.0.1", RECEIVERS)
    (tmp_path / "receiver.py").write_text(receiver)
    hook = printed["curl", "first webhook"].replace("http://127.0.0.1:9000", f"http://{RECEIVERS}:{port}").replace("sleep 1", WAIT)
    hook = hook.replace("receiver.py &", "receiver.py > events 2>&1 & echo $! > pid;")
    runner.environment = {"PORT": str(port), "HOST": RECEIVERS}
    try:
        output = runner.start("bash", "-euo", "pipefail", text="\n".join([setup, *(printed["curl", one] for one in STEPS), hook]))
        assert '"title":"Midnight Running"' in output
        assert '"status":"succeeded"' in output
        assert "1,GBAYE2600100,matched,1,Midnight Running,GBAYE2600100" in output
        assert '"matched":true' in output
        until(lambda: '"type":"webhook.ping"' in (tmp_path / "events").read_text(), "the event")
    finally:
        runner.start("bash", text="test ! -e pid || kill $(cat pid)")


STEPS = ("first search", "first job", "first identify")
WAIT = "until (exec 3<>/dev/tcp/$HOST/$PORT) 2>/dev/null; do sleep 0.05; done"
"""Waits until the receiver listens, however slow the machine is."""

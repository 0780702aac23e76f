"""The commands and programs that the README of the Python client prints, run as printed against the running server."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from standardwebhooks.webhooks import Webhook

from account_store.clock import read_utc_time
from music_catalog import SignatureError
from music_catalog.command_line import main
from tests.conftest import ROOT
from tests.contract.sample_recording import make_clip
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.contract.conftest import Api

README = (ROOT / "clients" / "python" / "README.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
COMMANDS = [shlex.split(line)[1:] for line in README.splitlines() if line.startswith("music-catalog ")]
SECRET = "whsec_" + "c2VjcmV0" * 4
on_sqlite = pytest.mark.parametrize("server", ["on_sqlite"], indirect=True)


@pytest.fixture
def place(api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a working folder with the files that the README names, and name the server in the environment."""
    monkeypatch.setenv("MUSIC_CATALOG_URL", api.base)
    monkeypatch.setenv("MUSIC_CATALOG_KEY", api.key)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "clip.wav").write_bytes(make_clip())
    (tmp_path / "codes.csv").write_text("isrc\nGBAYE2600100\n")
    return tmp_path


def test_readme_has_the_programs_that_are_tested_here() -> None:
    assert (len(PROGRAMS), [command[0] for command in COMMANDS]) == (3, ["search", "identify", "resolve"])


@on_sqlite
@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.usefixtures("place")
def test_printed_command_succeeds(command: list[str]) -> None:
    assert main(command) == 0


@on_sqlite
@pytest.mark.parametrize(("program", "printed"), [(PROGRAMS[0], "GBDUW0000059 not_found"), (PROGRAMS[1], "1 of 1")], ids=["lookups", "job"])
def test_printed_program_succeeds(place: Path, program: str, printed: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "clients" / "python")}
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert (run.returncode, printed in run.stdout) == (0, True), run.stdout + run.stderr


def test_printed_receiver_takes_a_signed_message_and_refuses_another(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    exec(PROGRAMS[2].replace("whsec_...", SECRET), names)  # noqa: S102 - the program of the README
    receive = names["receive"]
    assert callable(receive)
    data = '"data":{"webhook_id":"w1","requested_at":"2026-11-27T09:00:00Z"}'
    body = f'{{"id":"e1","type":"webhook.ping","timestamp":"2026-11-27T09:00:00Z",{data}}}'
    at = read_utc_time()
    headers = {"webhook-id": "e1", "webhook-timestamp": str(int(at.timestamp())), "webhook-signature": Webhook(SECRET).sign("e1", at, body)}
    receive(headers, body.encode())
    assert "e1 webhook.ping" in capsys.readouterr().out
    with pytest.raises(SignatureError):
        receive(headers, body.encode() + b" ")

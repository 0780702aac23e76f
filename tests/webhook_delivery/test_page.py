"""Tests of docs/guides/webhooks.md: its examples run as printed, and its names exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from account_store.clock import read_utc_time
from account_store.webhooks.endpoints import DISABLED_REASONS, generate_secret
from account_store.webhooks.event_types import EVENT_TYPES, PING
from account_store.webhooks.sealing import KEYS_VARIABLE
from account_store.webhooks.secret_keys import KEY_FILE_VARIABLE
from outbound_http import ALLOW_VARIABLE
from tests.conftest import ROOT
from tests.ports import free_port
from tests.waiting import PATIENCE_SECONDS, until
from webhook_delivery.signing import sign_headers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = (ROOT / "docs" / "guides" / "webhooks.md").read_text()
RECEIVER, BY_HAND = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
BODY = '{"type":"catalog.published","timestamp":"2026-11-21T12:00:00Z","data":{"build":"ü"}}'


@pytest.fixture
def receiver_of_page(tmp_path: Path) -> Iterator[tuple[str, str, Path]]:
    """Run the page's receiver; yield its address, its secret and the file that it prints to."""
    secret, port, printed = generate_secret(), free_port(), tmp_path / "printed"
    program = tmp_path / "receiver.py"
    program.write_text(RECEIVER, encoding="utf-8")
    environment = {**os.environ, "WEBHOOK_SECRET": secret, "PORT": str(port), "PYTHONIOENCODING": "utf-8"}
    with printed.open("wb") as out:
        process = subprocess.Popen([sys.executable, str(program)], stdout=out, stderr=subprocess.DEVNULL, env=environment)
        yield f"http://127.0.0.1:{port}/hook", secret, printed
        process.kill()
        process.wait(timeout=PATIENCE_SECONDS)


def posted(url: str, headers: dict[str, str], body: str) -> int:
    def status() -> int:
        try:
            return httpx.post(url, headers=headers, content=body.encode(), trust_env=False, timeout=PATIENCE_SECONDS).status_code
        except httpx.ConnectError:
            return 0

    return until(status, "the receiver")


def test_receiver_of_the_page_takes_our_messages_once_and_no_others(receiver_of_page: tuple[str, str, Path]) -> None:
    url, secret, printed = receiver_of_page
    headers = sign_headers("msg_1", BODY, read_utc_time(), [generate_secret(), secret])
    assert posted(url, headers, BODY) == 204
    assert posted(url, headers, BODY) == 204
    assert posted(url, headers, BODY.replace("ü", "x")) == 400
    assert printed.read_text(encoding="utf-8") == "catalog.published {'build': 'ü'}\n"


def test_check_by_hand_of_the_page_agrees_with_the_library() -> None:
    names: dict[str, Any] = {}
    exec(BY_HAND, names)  # noqa: S102 -- our own page
    is_ours, secret = names["is_ours"], generate_secret()
    headers = sign_headers("msg_1", BODY, read_utc_time(), [generate_secret(), secret])
    assert is_ours(secret, headers, BODY.encode())
    assert not is_ours(generate_secret(), headers, BODY.encode())
    assert not is_ours(secret, headers, BODY.encode() + b" ")
    assert not is_ours(secret, {**headers, "webhook-id": "msg_2"}, BODY.encode())
    assert not is_ours(secret, {**headers, "webhook-timestamp": str(int(headers["webhook-timestamp"]) - 301)}, BODY.encode())


def test_every_event_reason_and_variable_is_in_the_page() -> None:
    names = [*EVENT_TYPES, PING, *DISABLED_REASONS, ALLOW_VARIABLE, KEYS_VARIABLE, KEY_FILE_VARIABLE]
    assert [name for name in names if f"`{name}`" not in PAGE] == []

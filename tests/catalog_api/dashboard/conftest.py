"""Fixtures: a server of two workers over a catalog with hostile names, and browsers signed in to it."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import httpx
import pytest
from argon2 import PasswordHasher

from account_store.clock import read_utc_time
from account_store.users import Users
from catalog_store.publisher import publish
from catalog_store.tables import TABLES
from tests.contract.awkward import SPLIT_OFF, Frames, isrc, make_frames
from tests.contract.conftest import Api, serving
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from account_store.accounts import Accounts
    from account_store.users import User

PASSWORD = "correct horse battery"  # noqa: S105 -- of no one
HOSTILE = """\"'><script>document.title="owned"</script><img src=x onerror="alert(1)">{{ 7 * 7 }}\u202e"""
HOSTILE_TRACK = 19
ALLOWED_TAGS = {
    *("html", "head", "meta", "title", "link", "body", "header", "main", "nav", "section", "article", "div", "p", "h1", "h2", "h3"),
    *("ul", "ol", "li", "dl", "dt", "dd", "a", "form", "label", "input", "select", "option", "textarea", "button", "details", "summary"),
    *("table", "thead", "tbody", "tr", "th", "td", "code", "pre", "small", "strong", "bdi", "span", "time", "progress"),
    *("figure", "figcaption", "svg", "rect", "fieldset", "legend"),
}
_names = itertools.count(1)


def hostile_catalog(root: Path, tables: Path) -> Path:
    """Publish the second build of the awkward catalog.

    Track 1 has evidence, and HOSTILE is in every text of a track.
    """
    frames = make_frames(is_second=True)
    for row in frames.rows["track"]:
        if row["recording_id"] == HOSTILE_TRACK:
            row["title"] = HOSTILE
            row["artists"][0]["name"] = HOSTILE
            row["releases"][0] |= {"title": HOSTILE, "artist_name": HOSTILE, "label_name": HOSTILE}
    for row in frames.rows["recording"]:
        if row["recording_id"] == HOSTILE_TRACK:
            row |= {"title": HOSTILE, "artist_credit": HOSTILE}
    for name in ("atom", "atom_member", "atom_isrc", "edge"):
        frames.rows[name] = []
    for track_id in (1, HOSTILE_TRACK):
        add_evidence(frames, track_id, HOSTILE if track_id == HOSTILE_TRACK else "")
    next_ids = dict.fromkeys(("recording", "artist", "release", "label"), SPLIT_OFF + 1)
    publish(frames.write(tables), root, snapshot_id="hostile", next_ids=next_ids)
    return root


def add_evidence(frames: Frames, track_id: int, hostile: str) -> None:
    """Add two groups of records with a typo between them; `hostile` is in all texts."""
    for number, title in ((0, "midnightrunning"), (1, "midnightruning")):
        atom_id = 10 * track_id + number
        keys = {"artist_key": "velvetfoxes" + hostile, "title_key": title + hostile, "stem_key": title, "number_key": ""}
        counts = {"record_count": 1, "platform_count": 1, "names": [hostile or "The Velvet Foxes"]}
        frames.add("atom", atom_id=atom_id, variant=hostile, duration_ms=178_500 + number, **keys, **counts)
        frames.add("atom_isrc", isrc=isrc(track_id), atom_id=atom_id, platforms=["store_a"], record_count=1)
    evidence_columns = {"kind": "typo", "score": 0.97, "evidence": f"runing ~ running {hostile}"}
    frames.add("edge", atom_id_a=10 * track_id, atom_id_b=10 * track_id + 1, **evidence_columns)
    records = [row for row in frames.rows["recording_member"] if row["recording_id"] == track_id]
    if hostile:
        for external_id in (HOSTILE, HOSTILE + "2"):
            frames.add("recording_member", platform="store_a", external_id=external_id, recording_id=track_id)
        records = frames.rows["recording_member"][-2:]
    for number, row in enumerate(records):
        place = {"platform": row["platform"], "external_id": row["external_id"]}
        frames.add("atom_member", atom_id=10 * track_id + number % 2, release_id="", content_hash=number, **place)
    named = {"platform": "store_a", "id": hostile or "5000001", "reason": "priority", "agreed": 1, "entity": "recording"}
    columns = [name for name in TABLES["recording_provenance"].polars_schema if name != "recording_id"]
    with_route_headers = {name: named[name.rpartition("_")[2]] for name in columns}
    frames.add("recording_provenance", recording_id=track_id, **with_route_headers)


@dataclass
class Browser:
    """A signed-in user without a real browser: cookie, forms with their token."""

    http: httpx.Client
    accounts: Accounts
    user: User

    def form_token(self, path: str = "/dashboard") -> str:
        return token_of(self.http.get(path).text)

    def post(self, path: str, data: dict[str, str] | None = None, **options: object) -> httpx.Response:
        return self.http.post(path, data={"form_token": self.form_token(), **(data or {})}, **options)  # type: ignore[arg-type]

    def key(self) -> str:
        return self.accounts.keys.create(self.user.account_id).key


class Page(HTMLParser):
    """Tags and attributes of a page; everything between tags is `text`."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def check(self) -> None:
        """Require only tags that templates use, no handlers, no styles, no script addresses: no foreign text became markup."""
        for tag, attributes in self.tags:
            assert tag in ALLOWED_TAGS, (tag, attributes)
            assert not [name for name in attributes if name.startswith("on") or name == "style"], (tag, attributes)
            for name in ("href", "src", "action"):
                assert re.match(r"[/#]|https?://", attributes.get(name) or "/"), (tag, attributes)


def token_of(html: str) -> str:
    found = re.search(r'name="form_token" value="(\w+)"', html)
    assert found, html
    return found[1]


@pytest.fixture(scope="session")
def dashboard_catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_catalog(tmp_path_factory.mktemp("hostile"), tmp_path_factory.mktemp("hostile_tables"))


@pytest.fixture(scope="session")
def server(dashboard_catalog: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    place = tmp_path_factory.mktemp("dashboard")
    with serving(dashboard_catalog, f"sqlite:///{place}/accounts.db", place, "--workers", "2") as api:
        yield api


@pytest.fixture
def visitor(server: Api) -> Iterator[httpx.Client]:
    """Yield a browser without any earlier visit."""
    with httpx.Client(base_url=server.base, timeout=PATIENCE_SECONDS) as client:
        yield client


def new_user(accounts: Accounts, plan: str = "free") -> tuple[User, str]:
    """Return a new user and the token of their session.

    The user signs up past the limits of addresses, with a quick hash.
    """
    users = Users(accounts.engine, read_utc_time, PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
    user = users.sign_up(f"kim{next(_names)}@example.org", PASSWORD)
    if plan != "free":
        accounts.change_plan(user.account_id, plan)
    return user, users.sign_in(user.email, PASSWORD).token


def signed_in(server: Api, visitor: httpx.Client, plan: str = "free") -> Browser:
    user, token = new_user(server.accounts, plan)
    visitor.cookies.set("dashboard", token, domain="127.0.0.1", path="/")
    return Browser(visitor, server.accounts, user)


@pytest.fixture
def browser(server: Api, visitor: httpx.Client) -> Browser:
    """On the free plan."""
    return signed_in(server, visitor)


@pytest.fixture
def paying(server: Api, visitor: httpx.Client) -> Browser:
    return signed_in(server, visitor, "starter")

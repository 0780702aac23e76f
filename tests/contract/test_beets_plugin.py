"""The plugin of the client in the real beets, against the running server. `make test-slow` gives beets an environment of its own."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.audio_recognition.audio import encoded
from tests.conftest import ROOT
from tests.contract.awkward import isrc, song, streamsvc_a_id, uuid
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.contract.conftest import Api

BIN = ROOT / ".venv-beets" / "bin"
CLIENT = ROOT / "clients" / "python"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BIN.exists(), reason="beets is not installed: `scripts/analyst_tools`"),
    pytest.mark.parametrize("server", ["on_sqlite"], indirect=True),
]
TAG = (
    "import sys; from mediafile import MediaFile as M; f = M(sys.argv[1]); f.update(dict(x.split('=', 1) for x in sys.argv[2:])); f.save()"
)
SHOW = "import sys; from mediafile import MediaFile as M; f = M(sys.argv[1]); print(f.isrc, f.genres)"


class Beets:
    """A library of beets in a folder, with the plugin."""

    def __init__(self, place: Path, api: Api, *, auto: bool) -> None:
        self.place = place
        (place / "config.yaml").write_text(
            f"directory: {place}/music\nlibrary: {place}/library.db\npluginpath: {CLIENT}/beetsplug\nplugins: musiccatalog\n"
            f"import: {{autotag: no, copy: yes, write: yes, quiet: yes}}\n"
            f"musiccatalog: {{url: '{api.base}', key: {api.key}, auto: {auto}}}\n"
        )
        (place / "new").mkdir()

    def run(self, *command: str) -> str:
        environment = {**os.environ, "BEETSDIR": str(self.place), "PYTHONPATH": str(CLIENT)}
        done = subprocess.run(
            [BIN / command[0], *command[1:]], env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def add(self, name: str, **tags: str) -> None:
        file = self.place / "new" / f"{name}.flac"
        file.write_bytes(encoded(song(1)[:11025], "flac", rate=11025))
        self.run("python", "-c", TAG, str(file), *(f"{tag}={value}" for tag, value in tags.items()))

    def import_all(self) -> None:
        self.run("beet", "import", str(self.place / "new"))

    def show(self, form: str, *query: str) -> str:
        return self.run("beet", "list", "-f", form, *query).strip()


def test_import_tags_items_by_isrc_and_by_name(api: Api, tmp_path: Path) -> None:
    beets = Beets(tmp_path, api, auto=True)
    beets.add("by code", artist="Somebody", title="Something", isrc=isrc(1, 1))
    beets.add("by name", artist="The Velvet Foxes", title="Midnight Runing")
    beets.add("unknown", artist="Nobody At All", title="Zzyzx Qqfhtw")
    beets.import_all()
    ids = f"1 {streamsvc_a_id(1)} {uuid(1)}"
    assert beets.show("$musiccatalog_id $streamsvc_a_id $catalog_b_id", "title:Something") == ids
    assert beets.show("$musiccatalog_id $isrc $genres", "title:Midnight Runing") == f"1 {isrc(1)} Deep House; House"
    assert beets.show("$isrc", "title:Something") == isrc(1, 1), "a value that an item has stays"
    assert beets.show("$title", "musiccatalog_id::.").count("\n") == 1
    [file] = (tmp_path / "music").rglob("*Midnight Runing.flac")
    assert beets.run("python", "-c", SHOW, str(file)) == f"{isrc(1)} ['Deep House', 'House']\n", "the file has the tags, too"


def test_command_tags_what_a_query_finds_and_a_refused_key_is_told(api: Api, tmp_path: Path) -> None:
    beets = Beets(tmp_path, api, auto=False)
    beets.add("by code", artist="Somebody", title="Something", isrc=isrc(2))
    beets.import_all()
    assert beets.show("$title", "musiccatalog_id::.") == ""
    beets.run("beet", "musiccatalog", "artist:Somebody")
    assert beets.show("$musiccatalog_id") == "2"
    config = tmp_path / "config.yaml"
    config.write_text(config.read_text().replace(api.key, "wrong"))
    with pytest.raises(AssertionError, match="invalid_api_key"):
        beets.run("beet", "musiccatalog")

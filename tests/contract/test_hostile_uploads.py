"""Tests of hostile and failed uploads: right status, no charge, no file left on disk, bounded memory, a server that continues."""

from __future__ import annotations

import io
import os
import signal
import socket
import threading
import time
import wave
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import numpy as np
import pytest

from tests.audio_recognition.audio import encoded, melody
from tests.contract.awkward import song
from tests.contract.conftest import Api, memory_of_servers, problem, serving
from tests.processes import children
from tests.waiting import PATIENCE_SECONDS, until

if TYPE_CHECKING:
    from collections.abc import Iterator

IDENTIFY = "/v1/tracks/identify"
MEBIBYTE = 2**20
SECONDS = 10.0
"""Time that an upload may take. One of 100 MB must fit in, also on a machine with other work."""
MOST = 2
KNOWN = encoded(song(1)[: 15 * 11025], "wav", rate=11025)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of kept uploads."""
    return tmp_path_factory.mktemp("uploads")


@pytest.fixture(scope="module")
def server(awkward_catalog: Path, tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Api]:
    place = tmp_path_factory.mktemp("hostile_uploads")
    limits = {"uploads": str(MOST), "upload_seconds": str(SECONDS), "upload_folder": str(folder), "body_seconds": "60"}
    with serving(awkward_catalog, f"sqlite:///{place}/accounts.db", place, matcher="true", **limits) as api:
        assert sent(api.as_caller(), KNOWN) == (200, "matched")
        yield api


@pytest.fixture
def api(server: Api) -> Iterator[Api]:
    """Yield a new account. Afterwards the server must still name a song and keep no file."""
    caller = server.as_caller()
    yield caller
    other = server.as_caller()
    assert sent(other, KNOWN) == (200, "matched")
    assert open_files_below(server) == 0


def sent(api: Api, file: object) -> tuple[int, str]:
    """Return the status and the outcome: the code of a problem, `matched`, or the reason."""
    answer = api.request("POST", IDENTIFY, content=file, headers={"content-type": "application/octet-stream"})
    if answer.status_code == 200:
        return 200, "matched" if answer.json()["matched"] else answer.json()["reason"]
    return problem(answer)[:2]


def used(api: Api) -> int:
    credits_: int = api.ask("/v1/usage")["credits_used"]
    return credits_


def worker(server: Api) -> int:
    """Return the process that answers, as soon as it exists."""
    return until(lambda: children(server.pid, b"spawn_main"), "a worker")[0]


def open_files_below(server: Api) -> int:
    """Count the files without a name that the worker holds in the folder for uploads."""
    folder = next(value for name, value in environment(worker(server)) if name == "CATALOG_API_UPLOAD_FOLDER")
    held = 0
    for handle in Path(f"/proc/{worker(server)}/fd").iterdir():
        try:
            held += str(handle.readlink()).startswith(folder)
        except FileNotFoundError:
            continue
    return held


def environment(process: int) -> list[list[str]]:
    return [pair.split("=", 1) for pair in Path(f"/proc/{process}/environ").read_text().split("\0") if "=" in pair]


def begun(api: Api, length: int, body: bytes) -> socket.socket:
    """Return a connection that announced `length` bytes and sent `body`."""
    address = urlsplit(api.base)
    connection = socket.create_connection((address.hostname or "", address.port or 0), timeout=PATIENCE_SECONDS)
    head = f"POST {IDENTIFY} HTTP/1.1\r\nhost: x\r\nx-api-key: {api.key}\r\ncontent-type: application/octet-stream\r\n"
    connection.sendall(f"{head}content-length: {length}\r\n\r\n".encode() + body)
    return connection


def ten_hours() -> bytes:
    """Return ten hours of silence at one sample a second, 36 kB."""
    file = io.BytesIO()
    with wave.open(file, "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(1)
        written.setframerate(1)
        written.writeframes(b"\x80" * 36_000)
    return file.getvalue()


def claims_ten_hours() -> bytes:
    """Return a file of some kB whose head claims ten hours."""
    file, size = bytearray(KNOWN[: 12 * 22_050]), (10 * 3600 * 22_050).to_bytes(4, "little")
    data = file.index(b"data") + 4
    file[4:8] = file[data : data + 4] = size
    return bytes(file)


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        written.writestr("song.wav", KNOWN)
    return file.getvalue()


def tagged(inner: bytes) -> bytes:
    """Return a file behind a tag of another format."""
    return b"ID3\x04\x00\x00\x00\x00\x00\x0a" + bytes(10) + inner


HOSTILE = {
    "one byte": (b"\x00", {(415, "unsupported_audio")}),
    "noise": (np.random.default_rng(5).bytes(300_000), {(415, "unsupported_audio")}),
    "archive with a song in it": (zipped(), {(415, "unsupported_audio")}),
    "page": (b"<html><audio src=http://127.0.0.1/></html>", {(415, "unsupported_audio")}),
    "list of other files": (b"[playlist]\nFile1=/etc/passwd\n", {(415, "unsupported_audio")}),
    "description of a stream": (b"v=0\no=- 0 0 IN IP4 127.0.0.1\nm=audio 9 RTP/AVP 0\n", {(415, "unsupported_audio")}),
    "list of parts": (b"ffconcat version 1.0\nfile /etc/passwd\n", {(415, "unsupported_audio")}),
    "flac in an mp3's tag in an mp3's tag": (tagged(tagged(b"fLaC" + bytes(50))), {(415, "unsupported_audio"), (415, "undecodable_audio")}),
    "film's head without a film": (b"\x00\x00\x00\x18ftypM4A " + bytes(16) + b"\xff\xff\xff\xffmoov" * 500, {(415, "undecodable_audio")}),
    "wav without a sound": (KNOWN[:44], {(415, "undecodable_audio")}),
    "noise behind the mark of ogg": (b"OggS\x00\x02" + np.random.default_rng(6).bytes(50_000), {(415, "undecodable_audio")}),
    "ten hours in some kB": (ten_hours(), {(200, "silence"), (200, "not_found"), (200, "low_diversity"), (415, "undecodable_audio")}),
    "claims ten hours": (claims_ten_hours(), {(200, "matched")}),
    "cut off": (encoded(song(1)[: 15 * 11025], "mp3", rate=11025)[:90_000], {(200, "matched")}),
    "bytes turned over": (bytes(byte ^ (0xFF * (at % 4_999 == 4_000)) for at, byte in enumerate(KNOWN)), {(200, "matched")}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_each_hostile_upload_gets_its_status_and_costs_nothing_unless_it_is_a_200(api: Api, name: str) -> None:
    file, expected = HOSTILE[name]
    answer = sent(api, file)
    assert answer in expected
    assert used(api) == (11 if answer[0] == 200 else 0)


def test_a_byte_more_than_100_mb_is_413_while_it_comes_and_takes_neither_memory_nor_disk(server: Api, api: Api, folder: Path) -> None:
    before, highest = memory_of_servers(server), [0]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            highest[0] = max(highest[0], memory_of_servers(server))

    def chunks() -> Iterator[bytes]:
        yield KNOWN
        for _ in range(99):
            yield bytes(MEBIBYTE)
        yield bytes(MEBIBYTE - len(KNOWN) + 1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    assert sent(api, chunks()) == (413, "body_too_large")
    done.set()
    watcher.join()
    assert highest[0] - before < 30 * MEBIBYTE
    assert used(api) == 0
    assert list(folder.iterdir()) == []
    assert open_files_below(server) == 0


def test_an_upload_that_takes_too_long_is_408_and_free(server: Api, api: Api) -> None:
    with begun(api, MEBIBYTE, KNOWN[:100_000]) as slow:
        started = time.monotonic()
        answer = b""
        while b"request_timeout" not in answer:
            part = slow.recv(65536)
            assert part, answer
            answer += part
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert time.monotonic() - started >= SECONDS - 0.5
    assert used(api) == 0
    until(lambda: open_files_below(server) == 0)


def test_a_client_that_goes_away_in_the_middle_pays_nothing_and_leaves_nothing(server: Api, api: Api, folder: Path) -> None:
    for _ in range(MOST + 2):
        begun(api, MEBIBYTE, KNOWN[:200_000]).close()
    until(lambda: used(api) == 0)
    until(lambda: open_files_below(server) == 0)
    assert list(folder.iterdir()) == []


def test_more_uploads_than_there_is_room_for_are_503_and_free(server: Api, api: Api) -> None:
    under_way = [begun(api, len(KNOWN), KNOWN[:200_000]) for _ in range(MOST)]
    until(lambda: open_files_below(server) == MOST)
    other = server.as_caller()
    assert sent(other, KNOWN) == (503, "recognition_unavailable")
    assert used(other) == 0
    for one in under_way:
        one.sendall(KNOWN[200_000:])
    for one in under_way:
        assert one.recv(65536).startswith(b"HTTP/1.1 200 ")
        one.close()
    assert used(api) == MOST * 11


def test_a_killed_worker_leaves_no_file_and_its_reservations_to_the_sweep(server: Api, api: Api, folder: Path) -> None:
    caller = server.as_caller()
    with begun(caller, MEBIBYTE, KNOWN[:200_000]):
        until(lambda: open_files_below(server) == 1)
        assert list(folder.iterdir()) == []  # it has no name
        os.kill(worker(server), signal.SIGKILL)

    def answers() -> bool:
        try:
            return sent(api, KNOWN) == (200, "matched")
        except OSError:
            return False
        except Exception as error:  # noqa: BLE001 - httpx's, while the worker is gone
            assert "Error" in type(error).__name__  # noqa: PT017
            return False

    until(answers)
    assert list(folder.iterdir()) == []
    assert (used(caller), used(api)) == (11, 11)  # reserved credits return after a quarter of an hour


def test_made_up_melodies_in_every_coding_never_name_a_recording(api: Api) -> None:
    for seed in (1001, 1002):
        assert sent(api, encoded(melody(12, seed=seed), "mp3", rate=11025)) == (200, "not_found")

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7

from outbound_http import Outbound
from outbound_http.allow_list import parse_allow_list
from stream_monitor.capture import hls, hls_playlists
from stream_monitor.capture.decoders import Decoders
from stream_monitor.capture.errors import CaptureError, LastingCaptureError
from stream_monitor.capture.source import open_source
from tests.stream_monitor.capture.hls_server import PLAYLIST, cut_mp4, cut_ts, media, serving_named
from tests.stream_monitor.servers import ok, serving
from tests.stream_monitor.shows import RATE, song
from tests.waiting import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

LOOPBACK = Outbound(parse_allow_list("127.0.0.1:*"))
SOUND = song(3, 12.0)
SECONDS = 12.0
FRAMES = 43
TS = cut_ts(SOUND, RATE, FRAMES)
KEY, VECTOR = bytes(range(16)), bytes(range(100, 116))


@pytest.fixture(scope="module")
def decoders() -> Iterator[Decoders]:
    made = Decoders()
    yield made
    made.close()


def read_parts(url: str) -> list[bytes]:
    """Return the bytes of each part."""
    parts = []
    with closing(open_source(LOOPBACK, url)) as source:
        more = True
        while more:
            read = b""
            while piece := source.read():
                read += piece
            parts.append(read)
            more = source.begin_next()
    return parts


def hear(decoders: Decoders, url: str) -> tuple[NDArray[np.int16], list[str]]:
    formats: list[str] = []
    with closing(open_source(LOOPBACK, url)) as source:
        return np.concatenate(list(decoders.decode(source, formats.append))), formats


def sounds_like(heard: NDArray[np.int16], seconds: float = SECONDS) -> bool:
    """Return whether the sound has that length and the loudness of the song."""
    loud = float(np.sqrt(np.mean(np.square(heard.astype(float)))))
    return abs(len(heard) / 11025 - seconds) < 0.5 and loud > 500


def ts_answers(*more: str, names: list[str] | None = None) -> dict[str, tuple[str, bytes]]:
    answers = {f"/s{number}.ts": ("video/mp2t", data) for number, data in enumerate(TS)}
    return {**answers, "/live.m3u8": (PLAYLIST, media(names or [f"s{number}.ts" for number in range(len(TS))], *more))}


def test_transport_stream_is_heard_whole(decoders: Decoders) -> None:
    with serving_named(ts_answers()) as address:
        heard, formats = hear(decoders, f"{address}/live.m3u8")
    assert sounds_like(heard)
    assert formats == [f"aac, {RATE} Hz, mono"]


@pytest.mark.parametrize("is_ranged", [False, True])
def test_fragmented_mp4_is_heard_whole(decoders: Decoders, *, is_ranged: bool) -> None:
    head, segments = cut_mp4(SOUND, RATE, FRAMES)
    answers = {"/init.mp4": ("video/mp4", head), **{f"/s{number}.m4s": ("video/mp4", data) for number, data in enumerate(segments)}}
    names, mapped = [f"s{number}.m4s" for number in range(len(segments))], '#EXT-X-MAP:URI="init.mp4"'
    if is_ranged:
        # A server that ignores ranges sends all; the part is cut out.
        answers = {"/all.mp4": ("video/mp4", head + b"".join(segments))}
        mapped = f'#EXT-X-MAP:URI="all.mp4",BYTERANGE="{len(head)}@0"'
        names, at = [], len(head)
        for number, data in enumerate(segments):
            names += [f"#EXT-X-BYTERANGE:{len(data)}" + (f"@{at}" if number == 0 else ""), "all.mp4"]
            at += len(data)
    answers["/live.m3u8"] = (PLAYLIST, media(names, mapped))
    with serving_named(answers) as address:
        heard, formats = hear(decoders, f"{address}/live.m3u8")
    assert sounds_like(heard)
    assert formats == [f"aac, {RATE} Hz, mono"]


def test_master_playlist_leads_to_the_sound_alone(decoders: Decoders) -> None:
    master = """#EXTM3U
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="x",DEFAULT=NO,URI="missing/other.m3u8"
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="y",DEFAULT=YES,URI="sub/live.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=900000,CODECS="avc1,mp4a",AUDIO="a"
big.m3u8
#EXT-X-STREAM-INF:BANDWIDTH=200000,CODECS="avc1,mp4a",AUDIO="a"
small.m3u8
"""
    answers = {f"/sub{name}": answer for name, answer in ts_answers().items()}
    asked: list[str] = []
    with serving_named({**answers, "/master.m3u8": (PLAYLIST, master.encode())}, asked) as address:
        heard, _ = hear(decoders, f"{address}/master.m3u8")
    assert sounds_like(heard)
    assert {"/big.m3u8", "/small.m3u8", "/missing/other.m3u8"}.isdisjoint(asked)


def test_variant_with_the_lowest_rate_is_taken_without_renditions() -> None:
    master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=900000\nbig.m3u8\n#EXT-X-STREAM-INF:BANDWIDTH=64000\nlive.m3u8\n"
    with serving_named({**ts_answers(), "/master.m3u8": (PLAYLIST, master.encode())}) as address:
        assert read_parts(f"{address}/master.m3u8") == [b"".join(TS)]


def test_sound_of_a_default_rendition_without_an_address_is_in_its_variant() -> None:
    master = """#EXTM3U
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Comments",DEFAULT=NO,URI="comments.m3u8"
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Main",DEFAULT=YES
#EXT-X-STREAM-INF:BANDWIDTH=200000,AUDIO="a"
main.m3u8
"""
    assert hls_playlists.choose_variant(master) == "main.m3u8"


def test_title_with_a_line_separator_is_no_segment() -> None:
    body = media(["s0.ts", "s1.ts"]).decode().replace(",\n", ",A\u2028B\x0bC\x85D\n")
    assert [one.resource.url for one in hls_playlists.parse_media_playlist(body).segments] == ["s0.ts", "s1.ts"]


def test_bit_rate_that_is_no_number_counts_as_the_highest() -> None:
    master = "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=\u00b2\n/no\n#EXT-X-STREAM-INF:BANDWIDTH=96000\n/yes\n"
    assert hls_playlists.choose_variant(master) == "/yes"


def test_discontinuity_begins_a_part_with_a_decoder_of_its_own(decoders: Decoders) -> None:
    head, segments = cut_mp4(SOUND, RATE, FRAMES)
    answers = ts_answers(names=["s0.ts", "s1.ts", "#EXT-X-DISCONTINUITY", '#EXT-X-MAP:URI="init.mp4"', "f0.m4s", "f1.m4s"])
    answers |= {"/init.mp4": ("video/mp4", head), **{f"/f{number}.m4s": ("video/mp4", segments[number]) for number in (0, 1)}}
    with serving_named(answers) as address:
        assert read_parts(f"{address}/live.m3u8") == [TS[0] + TS[1], head + segments[0] + segments[1]]
        heard, formats = hear(decoders, f"{address}/live.m3u8")
    assert sounds_like(heard, 4 * FRAMES * 1024 / RATE)
    assert len(formats) == 2


def encrypt(data: bytes, vector: bytes) -> bytes:
    padding, locked = PKCS7(128).padder(), Cipher(algorithms.AES(KEY), modes.CBC(vector)).encryptor()
    return locked.update(padding.update(data) + padding.finalize()) + locked.finalize()


@pytest.mark.parametrize("has_vector", [True, False])
def test_aes_128_is_decrypted(*, has_vector: bool) -> None:
    tag = '#EXT-X-KEY:METHOD=AES-128,URI="key.bin"' + (f",IV=0x{VECTOR.hex()}" if has_vector else "")
    answers = ts_answers(tag)
    for number, data in enumerate(TS):
        answers[f"/s{number}.ts"] = ("video/mp2t", encrypt(data, VECTOR if has_vector else number.to_bytes(16, "big")))
    answers["/key.bin"] = ("application/octet-stream", KEY)
    asked: list[str] = []
    with serving_named(answers, asked) as address:
        assert read_parts(f"{address}/live.m3u8") == [b"".join(TS)]
    assert asked.count("/key.bin") == 1


@pytest.mark.parametrize("is_clear", [False, True])
def test_header_behind_a_key_is_decrypted_unless_it_is_in_the_clear(*, is_clear: bool) -> None:
    head, parts = cut_mp4(SOUND, RATE, FRAMES)
    tags = [f'#EXT-X-KEY:METHOD=AES-128,URI="key.bin",IV=0x{VECTOR.hex()}', '#EXT-X-MAP:URI="head.mp4"']
    answers = {f"/{number}.m4s": ("video/mp4", encrypt(data, VECTOR)) for number, data in enumerate(parts)}
    answers |= {"/head.mp4": ("video/mp4", head if is_clear else encrypt(head, VECTOR)), "/key.bin": ("application/octet-stream", KEY)}
    answers["/live.m3u8"] = (PLAYLIST, media([f"{number}.m4s" for number in range(len(parts))], *tags))
    with serving_named(answers) as address:
        assert read_parts(f"{address}/live.m3u8") == [head + b"".join(parts)]


@pytest.mark.parametrize(
    ("tag", "message"),
    [
        ('#EXT-X-KEY:METHOD=SAMPLE-AES,URI="key.bin"', r"encrypted \(SAMPLE-AES"),
        ('#EXT-X-KEY:METHOD=AES-128,URI="skd://x",KEYFORMAT="com.apple.streamingkeydelivery"', "encrypted"),
        ('#EXT-X-KEY:METHOD=AES-128,URI="skd://x"', "not allowed"),
        ('#EXT-X-KEY:METHOD=AES-128,URI="short.bin"', "has 3 bytes instead of 16"),
    ],
)
def test_other_encryption_is_refused_with_its_name(tag: str, message: str) -> None:
    with (
        serving_named({**ts_answers(tag), "/short.bin": ("text/plain", b"abc")}) as address,
        pytest.raises(LastingCaptureError, match=message),
    ):
        read_parts(f"{address}/live.m3u8")


@pytest.mark.parametrize(
    "place",
    [
        "variant",
        "rendition",
        "segment",
        "header",
        "key",
        "redirect of a segment",
        "redirect of a byte range",
        "redirect of a header",
        "redirect of a key",
        "redirect of a playlist",
    ],
)
def test_address_inside_the_network_is_refused_wherever_it_stands(place: str) -> None:
    asked: list[str] = []
    with serving_named({"/inside": ("video/mp2t", TS[0])}, asked, host="127.0.0.2") as inside:
        url, moved = f"{inside}/inside", f"HTTP/1.1 302 Found\r\nLocation: {inside}/inside\r\n\r\n"
        answers = {
            "variant": {"/live.m3u8": (PLAYLIST, f"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n{url}\n".encode())},
            "rendition": {"/live.m3u8": (PLAYLIST, (
                f'#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",URI="{url}"\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"\nx.m3u8\n'
            ).encode())},
            "segment": ts_answers(names=[url]),
            "header": ts_answers(f'#EXT-X-MAP:URI="{url}"'),
            "key": ts_answers(f'#EXT-X-KEY:METHOD=AES-128,URI="{url}"'),
            "redirect of a segment": {**ts_answers(), "/s0.ts": (moved, b"")},
            "redirect of a byte range": {**ts_answers(names=["#EXT-X-BYTERANGE:10@0", "s0.ts"]), "/s0.ts": (moved, b"")},
            "redirect of a header": {**ts_answers('#EXT-X-MAP:URI="init.mp4"'), "/init.mp4": (moved, b"")},
            "redirect of a key": {**ts_answers('#EXT-X-KEY:METHOD=AES-128,URI="key.bin"'), "/key.bin": (moved, b"")},
            "redirect of a playlist": {"/live.m3u8": (moved, b"")},
        }[place]  # fmt: skip
        with serving_named(answers) as address, pytest.raises(LastingCaptureError, match="the address is not allowed"):
            read_parts(f"{address}/live.m3u8")
    assert asked == [], "nothing was asked inside"


def test_live_playlist_that_redirects_into_the_network_later_is_refused() -> None:
    asked: list[str] = []
    answers = ts_answers()
    answers["/live.m3u8"] = (PLAYLIST, media(["s0.ts"], target=1, ended=False))
    with (
        serving_named({"/inside": (PLAYLIST, media(["s0.ts", "s1.ts"]))}, asked, host="127.0.0.2") as inside,
        serving_named(answers) as address,
        closing(open_source(LOOPBACK, f"{address}/live.m3u8")) as source,
    ):
        assert source.read() == TS[0]
        answers["/live.m3u8"] = (f"HTTP/1.1 302 Found\r\nLocation: {inside}/inside\r\n\r\n", b"")
        with pytest.raises(LastingCaptureError, match="the address is not allowed"):
            source.read()
    assert asked == [], "nothing was asked inside"


@pytest.mark.parametrize("later", ["segment", "playlist"])
def test_name_that_moves_into_the_network_between_requests_is_refused(later: str) -> None:
    asked: list[str] = []
    leads_to = ["127.0.0.1"]
    outbound = Outbound(parse_allow_list("127.0.0.1:*"), lambda host, port: leads_to)  # noqa: ARG005 - as resolvers are called
    answers = ts_answers()
    answers["/live.m3u8"] = (PLAYLIST, media(["s0.ts", "s1.ts"] if later == "segment" else ["s0.ts"], target=1, ended=False))
    with serving_named(answers, asked) as address:
        port = address.rpartition(":")[2]
        with closing(open_source(outbound, f"http://radio.example:{port}/live.m3u8")) as source:
            assert source.read() == TS[0]
            leads_to[0] = "127.0.0.2"
            with pytest.raises(LastingCaptureError, match="the address is not allowed"):
                source.read()
    assert asked == ["/live.m3u8", "/s0.ts"]


def test_live_playlist_is_joined_near_its_end_and_polled_until_it_ends() -> None:
    answers = ts_answers()
    names = [f"s{number}.ts" for number in range(len(TS))]
    answers["/live.m3u8"] = (PLAYLIST, media(names[:4], target=1, ended=False))

    def go_on() -> None:
        time.sleep(0.7)
        answers["/live.m3u8"] = (PLAYLIST, media(names[2:5], first=2, target=1, ended=False))
        time.sleep(0.7)
        answers["/live.m3u8"] = (PLAYLIST, media(names[3:6], first=3, target=1))

    thread = threading.Thread(target=go_on)
    with serving_named(answers) as address:
        thread.start()
        assert read_parts(f"{address}/live.m3u8") == [b"".join(TS[1:6])]
        thread.join()


@pytest.mark.parametrize(
    ("later", "message"),
    [
        (media(["s3.ts"], first=40, target=1, ended=False), "segments were missed"),
        (media(["s0.ts"], first=0, target=1, ended=False), "began again"),
        (None, "no new segment"),
    ],
)
def test_live_playlist_that_cannot_be_followed_ends_the_connection(
    later: bytes | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hls, "_STALLED_TARGETS", 2)
    answers = ts_answers()
    first = media(["s0.ts", "s1.ts"], first=8, target=1, ended=False)
    answers["/live.m3u8"] = (PLAYLIST, first)

    def go_on() -> None:
        time.sleep(0.3)
        answers["/live.m3u8"] = (PLAYLIST, later or first)

    thread = threading.Thread(target=go_on)
    with serving_named(answers) as address:
        thread.start()
        with pytest.raises(CaptureError, match=message):
            read_parts(f"{address}/live.m3u8")
        thread.join()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("#EXTM3U\n#EXT-X-TARGETDURATION:x\n", "'x' is not a number"),
        ("#EXTM3U\n#EXT-X-TARGETDURATION:nan\n", "'nan' is not a number"),
        ("#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:inf\n", "'inf' is not a number"),
        ("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n", "names no variant"),
        ('#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI="k",IV=0xzz\n', "not an initialization vector"),
        ("#EXTM3U\n#EXT-X-ENDLIST\n#EXTINF:2,\nmissing.ts\n", "404"),
    ],
)
def test_broken_playlist_is_named(body: str, message: str) -> None:
    with serving_named({"/live.m3u8": (PLAYLIST, body.encode())}) as address, pytest.raises(CaptureError, match=message):
        read_parts(f"{address}/live.m3u8")


def test_segment_without_end_and_one_cut_short_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hls, "LARGEST_SEGMENT", 1000)
    with serving_named(ts_answers()) as address, pytest.raises(LastingCaptureError, match="sent more than"):
        read_parts(f"{address}/live.m3u8")
    playlist = media(["s0.ts"], target=1)

    def answer(connection: object, path: str) -> None:
        body = playlist if path == "/live.m3u8" else b"x" * 10
        length = len(body) if path == "/live.m3u8" else 500
        connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Type: {PLAYLIST}\r\nContent-Length: {length}\r\n\r\n".encode() + body)  # type: ignore[attr-defined]

    with serving(answer) as address, pytest.raises(CaptureError, match="hung up after 10 of 500 bytes"):
        read_parts(f"{address}/live.m3u8")


@pytest.mark.parametrize("rest", [b"400\r\nshort", b"5\r\nshort\r\n", b"5\r\nshort\r\n0"])
def test_chunked_segment_cut_short_is_asked_for_again(rest: bytes) -> None:
    playlist = ok(PLAYLIST) + media(["s0.ts"], target=1)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    whole = head + f"{len(TS[0]):x}\r\n".encode() + TS[0] + b"\r\n0\r\n\r\n"
    answers = [head + rest, whole]
    with serving(lambda connection, path: connection.sendall(playlist if path == "/live.m3u8" else answers.pop(0))) as address:
        assert read_parts(f"{address}/live.m3u8") == [TS[0]]


def test_closing_ends_a_wait_for_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hls_playlists, "_LONGEST_SECONDS", 10**6)  # so that only the closing can end the wait
    answers = ts_answers()
    answers["/live.m3u8"] = (PLAYLIST, media(["s0.ts"], target=10**6, ended=False))
    with serving_named(answers) as address:
        source = open_source(LOOPBACK, f"{address}/live.m3u8")
        assert source.read() == TS[0]
        with ThreadPoolExecutor(1) as threads:
            reading = threads.submit(source.read)
            threading.Timer(0.3, source.close).start()
            assert reading.result(PATIENCE_SECONDS) == b""

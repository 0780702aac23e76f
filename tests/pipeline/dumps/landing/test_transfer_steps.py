"""Each step of a transfer by itself, without a server: ranges, sizes, conditions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import pytest

from catalog_store import file_transfer
from pipeline.dumps.errors import DumpError
from pipeline.dumps.landing import transfer
from pipeline.dumps.landing.transfer import download
from pipeline.dumps.landing.upstream import RemoteFile

# --- transfers without a server ---


class Seekless:
    """A remote file that may refuse to seek, in a file system that is none over HTTP."""

    protocol = "plain"

    def __init__(self, content: bytes, refusal: Exception | None = None) -> None:
        self.content, self.refusal = content, refusal

    def open(self, path: str, mode: str, **_options: object) -> Any:  # noqa: ANN401 - a file
        (file := Path(path).open(mode)).__enter__()  # noqa: SIM115 - closed by who asked
        if self.refusal:
            return _Refusing(file, self.refusal)
        return file


class _Refusing:
    def __init__(self, file: Any, refusal: Exception) -> None:  # noqa: ANN401
        self.file, self.refusal = file, refusal
        self.read = file.read

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def seek(self, _place: int) -> None:
        raise self.refusal


@pytest.mark.parametrize("refusal", [None, OSError("no ranges"), ValueError("no ranges")])
@pytest.mark.parametrize(("size", "left_behind"), [(10, 0), (10, 1), (10, 4), (10, 9), (None, 4), (None, 0)])
def test_file_system_without_ranges_is_read_from_the_beginning(
    tmp_path: Path, refusal: Exception | None, size: int | None, left_behind: int
) -> None:
    (tmp_path / "origin").write_bytes(b"0123456789")
    part = tmp_path / "part"
    if left_behind:
        part.write_bytes(b"0123456789"[:left_behind])
    file = RemoteFile(str(tmp_path / "origin"), "a", size, ("tag",))
    came = download(Seekless(b"", refusal), file, part)
    assert part.read_bytes() == b"0123456789"
    assert came == (10 - left_behind if refusal is None else 10)


@pytest.mark.parametrize("size", [9, 11])
def test_transfer_of_another_size_than_announced_is_refused(tmp_path: Path, size: int) -> None:
    (tmp_path / "origin").write_bytes(b"0123456789")
    with pytest.raises(DumpError, match=rf"^a: .* {size} (bytes that it|were) announced$"):
        download(Seekless(b""), RemoteFile(str(tmp_path / "origin"), "a", size, ("tag",)), tmp_path / "part")


@pytest.mark.parametrize(
    ("header", "start", "size", "is_rest"),
    [
        ("bytes 5-9/10", 5, 10, True),
        (" bytes 5-9/10 ", 5, 10, True),
        ("bytes 5-9/*", 5, 10, True),
        ("bytes 5-9/11", 5, None, True),
        ("bytes 5-9/11", 5, 10, False),
        ("bytes 4-9/10", 5, 10, False),
        ("bytes 6-9/10", 5, 10, False),
        ("bytes 5-9", 5, 10, False),
        ("bytes 5-9/10 more", 5, 10, False),
        ("", 5, None, False),
    ],
)
def test_range_that_a_server_names_is_the_rest_or_is_not(header: str, start: int, size: int | None, is_rest: bool) -> None:  # noqa: FBT001
    assert file_transfer._is_rest(header, start, size) is is_rest


@pytest.mark.parametrize(
    ("tag", "modified", "condition"),
    [('"e"', "m", '"e"'), ('W/"e"', "m", "m"), ('W/"e"', None, None), (None, "m", "m"), (None, None, None), ("", "m", "m")],
)
def test_request_is_conditioned_by_a_strong_tag_or_by_the_time_of_change(
    tag: str | None, modified: str | None, condition: str | None
) -> None:
    assert transfer._choose_validator(RemoteFile("p", "n", 1, entity_tag=tag, modified=modified)) == condition

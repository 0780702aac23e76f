"""Tests of compression on lists and batches beside the catalog's own (contract A2)."""

from __future__ import annotations

import gzip
import re
from typing import TYPE_CHECKING

import pytest
import zstandard

from catalog_api.compression import LEAST_BYTES

if TYPE_CHECKING:
    from tests.contract.conftest import Api


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
def test_a2_lists_and_batches_of_every_kind_are_compressed_when_they_are_large(api: Api, coding: str) -> None:
    for _ in range(20):
        api.accounts.keys.create(api.accounts.keys.find_caller(api.key).account_id)  # type: ignore[union-attr]
    names = {"input_type": "artist_name", "items": ["the velvet foxes"] * 100}
    requests: dict[str, object] = {
        "/v1/audit": None,
        "/v1/jobs": None,
        "/v1/conflicts/isrc": None,
        "/v1/artists?name=daft": None,
        "/v1/labels?name=blue": None,
        "/v1/releases?barcode=05099902894225": None,
        "/v1/artists/resolve": names,
        "/v1/releases/resolve": {"input_type": "id", "items": [1] * 100},
    }
    decode = {"gzip": gzip.decompress, "zstd": lambda content: zstandard.ZstdDecompressor().decompress(content)}[coding]
    large = set()
    for path, body in requests.items():
        sent: dict[str, tuple[str | None, bytes]] = {}
        for accepted in ("identity", coding):
            headers = {"x-api-key": api.key, "accept-encoding": accepted}
            with api.http.stream("GET" if body is None else "POST", api.base + path, headers=headers, json=body) as answer:
                assert answer.status_code == 200, path
                sent[accepted] = (answer.headers.get("content-encoding"), b"".join(answer.iter_raw()))
        plain, (found, content) = sent["identity"][1], sent[coding]
        assert found == (coding if len(plain) >= LEAST_BYTES else None), path
        # A batch says in its body how many credits are left.
        one, other = (re.sub(rb'"credits_remaining":\d+', b"", text) for text in (decode(content) if found else content, plain))
        assert one == other, path
        if found:
            large.add(path)
    assert {"/v1/audit", "/v1/artists/resolve", "/v1/releases/resolve"} <= large

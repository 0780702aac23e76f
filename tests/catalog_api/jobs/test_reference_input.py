from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from catalog_api.jobs.job_folder import JobFolder
from catalog_api.jobs.job_input import InvalidInputError
from catalog_api.jobs.reference_input import fetch_input
from outbound_http import Outbound
from outbound_http.allow_list import parse_allow_list

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("url", "message"),
    [("https://xn--a/rows.csv", "not allowed"), ("http://127.0.0.1:1/rows.csv", "not a public address")],
    ids=["a name that no one can decode", "an address inside"],
)
def test_address_that_cannot_be_read_is_named_as_the_fault_of_the_input(tmp_path: Path, url: str, message: str) -> None:
    with pytest.raises(InvalidInputError, match=f"the address cannot be read: .*{message}"):
        fetch_input(Outbound(parse_allow_list("")), url, JobFolder(tmp_path, "job"), largest=100, after_part=lambda: None)

"""Times of the dashboard's pages on a running server, with 100,000 requests in the log of the account.

    python -m benchmarks.dashboard_pages             # beside `make run`: http://127.0.0.1:8000 over demo/accounts.db

Adds a user and the requests to the account of the demo. Out of scope: CPU of /v1 (http.py).
"""

from __future__ import annotations

import argparse
import random
import secrets
import statistics
import time
from typing import TYPE_CHECKING

import httpx

from account_store.accounts import Accounts

if TYPE_CHECKING:
    from account_store.request_log import Entry

PAGES = (
    *("", "/keys", "/usage", "/usage.csv", "/requests", "/requests?route=search&outcome=refused", "/requests?id=none", "/genres", "/audit"),
    *("/search?artist=daft+punk&title=one+more+time", "/tracks/27543", "/tracks/27543/evidence", "/team", "/second-factor", "/password"),
    *("/streams", "/streams/on-air", "/streams/report", "/webhooks", "/suggestions"),
)
ROUTES = ("/v1/tracks/{id}", "/v1/tracks/search", "/v1/tracks/isrc/{isrc}", "/v1/tracks/resolve", "/v1/genres")
_REQUESTS, _AT_ONCE, _LOADS, _WEEK = 100_000, 1_000, 7, 7 * 86_400


def add_requests(accounts: Accounts, account_id: int) -> None:
    """Log requests over the last week."""
    now, generator = time.time(), random.Random(1)  # noqa: S311 - the same requests in every run
    key_id = accounts.keys.list_summaries(account_id)[0].key_id
    for first in range(0, _REQUESTS, _AT_ONCE):
        entries: list[Entry] = []
        for number in range(first, first + _AT_ONCE):
            at = now - _WEEK * (1 - number / _REQUESTS) + 60
            status, code = (404, "not_found") if number % 10 == 0 else (200, None)
            route, microseconds = generator.choice(ROUTES), generator.randint(200, 3000)
            entries.append((account_id, at, key_id, "GET", route, status, code, 1, microseconds, f"r-{number:x}"))
        accounts.requests.add(entries)


def main() -> None:
    """Print the times of each page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--accounts", default="sqlite:///demo/accounts.db")
    options = parser.parse_args()
    accounts = Accounts.open(options.accounts)
    account_id = accounts.list_all()[0].account_id
    user, password = accounts.users.invite(account_id, f"bench{secrets.token_hex(4)}@example.org")
    add_requests(accounts, account_id)
    token = accounts.users.sign_in(user.email, password).token
    with httpx.Client(base_url=options.url, cookies={"dashboard": token}, timeout=60) as client:
        for page in PAGES:
            seconds = []
            for _ in range(_LOADS):
                started = time.perf_counter()
                client.get(f"/dashboard{page}").raise_for_status()
                seconds.append(time.perf_counter() - started)
            print(f"{page or '/':<48} median {statistics.median(seconds) * 1000:6.1f} ms, worst {max(seconds) * 1000:6.1f} ms")
    accounts.close()


if __name__ == "__main__":
    main()

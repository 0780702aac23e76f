"""A process that charges, as an API worker does: run by tests, killed by some.

    charging_process.py URL KEY CLIENTS REQUESTS [PREFIX]

CLIENTS concurrent clients charge one credit each until REQUESTS are done; with PREFIX under the idempotency keys PREFIX0, PREFIX1 ...
Prints `granted <n>` or `refused <n>` for each answer as it comes.
"""

from __future__ import annotations

import asyncio
import sys

from account_store import Accounts


async def charge(accounts: Accounts, key: str, clients: int, requests: int, prefix: str) -> None:
    caller = await accounts.keys.authenticate(key)
    assert caller is not None
    numbers = iter(range(requests))

    async def client() -> None:
        for number in numbers:
            answer = await accounts.ledger.charge(caller, 1, idempotency_key=f"{prefix}{number}" if prefix else None)
            sys.stdout.write(f"{'granted' if answer.granted else 'refused'} {number}\n")
            sys.stdout.flush()

    await asyncio.gather(*[client() for _ in range(clients)])


if __name__ == "__main__":
    address, caller_key, how_many, most, *rest = sys.argv[1:]
    opened = Accounts.open(address)
    asyncio.run(charge(opened, caller_key, int(how_many), int(most), rest[0] if rest else ""))
    opened.close()

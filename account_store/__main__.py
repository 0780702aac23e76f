"""`python -m account_store`: create accounts and keys, list and revoke keys. Answers are JSON lines; errors go to stderr, exit code 1."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from account_store.accounts import Accounts
from account_store.errors import AccountError

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    options = _parser().parse_args(arguments)
    store = Accounts.open(options.accounts)
    try:
        for answer in _COMMANDS[options.command](store, options):
            print(json.dumps(answer, default=str))
    except AccountError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        store.close()
    return 0


def _create_account(store: Accounts, options: argparse.Namespace) -> list[dict[str, object]]:
    return [{"account_id": store.create(options.name).account_id, "name": options.name}]


def _create_key(store: Accounts, options: argparse.Namespace) -> list[dict[str, object]]:
    return [{"key": store.keys.create(store.named(options.name).account_id, options.key).key, "note": "shown once, never again"}]


def _list_keys(store: Accounts, options: argparse.Namespace) -> list[dict[str, object]]:
    return [asdict(key) for key in store.keys.summaries(store.named(options.name).account_id)]


def _revoke_key(store: Accounts, options: argparse.Namespace) -> list[dict[str, object]]:
    store.keys.revoke(options.key_id)
    return [{"key_id": options.key_id, "revoked": True}]


_COMMANDS = {"create-account": _create_account, "create-key": _create_key, "list-keys": _list_keys, "revoke-key": _revoke_key}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m account_store", description=__doc__)
    parser.add_argument("--accounts", default="sqlite:///accounts.db", metavar="URL", help="database of the accounts (default %(default)s)")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("create-account", "create-key", "list-keys"):
        command = commands.add_parser(name)
        command.add_argument("name", help="name of the account")
        if name == "create-key":
            command.add_argument("--key", help="use this key instead of a random one (demos and tests only)")
    commands.add_parser("revoke-key").add_argument("key_id", type=int)
    return parser


if __name__ == "__main__":
    sys.exit(main())

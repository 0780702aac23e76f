"""`python -m account_store`: an operator's commands for accounts, keys, plans, credits and suggestions.

Output is one record per line with --json, else text for people. Exit code 0: done; 1: refused, with the reason on standard error; 2: the
command line is wrong; 3: the database cannot be reached. The commands are in commands.py.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING

from account_store.accounts import Accounts
from account_store.commands import COMMANDS
from account_store.errors import AccountError, UnavailableError
from account_store.records import format_text, to_record
from catalog_store.standard_output import AnswerLostError, print_answer

if TYPE_CHECKING:
    from collections.abc import Sequence

REFUSED, UNREACHABLE = 1, 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    options = build_parser().parse_args(arguments)
    try:
        accounts = Accounts.open(options.accounts)
        try:
            records = [to_record(record) for record in COMMANDS[options.command].run(accounts, options)]
        finally:
            accounts.close()
    except AccountError as error:
        message = json.dumps({"error": {"code": error.code, "message": str(error)}}) if options.json else f"error: {error}"
        print(message, file=sys.stderr)
        return UNREACHABLE if isinstance(error, UnavailableError) else REFUSED
    try:
        if options.json:
            for record in records:
                print_answer(json.dumps(record, ensure_ascii=False))
        else:
            print_answer(format_text(records).removesuffix("\n"))
    except AnswerLostError as error:
        print(f"error: {error}", file=sys.stderr)
        return REFUSED
    return 0


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m account_store",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[_build_common_parser()],
    )
    parser.set_defaults(accounts=os.environ.get("CATALOG_API_ACCOUNTS_URL", "sqlite:///accounts.db"), json=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        sub = commands.add_parser(name, help=command.help, description=command.help, parents=[_build_common_parser()])
        for argument, settings in command.arguments.items():
            sub.add_argument(argument, **settings)
    return parser


def _build_common_parser() -> argparse.ArgumentParser:
    """Return a parser of the options before and after the command. Each place needs its own: a default would override the other's value."""
    about = "database of the accounts: sqlite:///<file> or postgresql://... (default: CATALOG_API_ACCOUNTS_URL, else sqlite:///accounts.db)"
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--accounts", default=argparse.SUPPRESS, metavar="URL", help=about)
    common.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="answer in JSON, one record per line")
    return common


if __name__ == "__main__":
    sys.exit(main())

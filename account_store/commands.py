"""The operator's commands: arguments, help and action of each. Add one here, and to docs/guides/accounts.md.

A command returns records (dataclasses or dictionaries) and raises AccountError. Out of scope: parsing and printing.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Any

from account_store.database import NEWEST
from account_store.errors import InvalidValueError
from account_store.key_rights import ALL_SCOPES, SCOPES, build_rights
from account_store.plans import LARGEST_FIGURE, Terms
from account_store.records import to_record
from account_store.suggestions import APPROVED, PENDING, REJECTED, STATUSES

if TYPE_CHECKING:
    from account_store.account import Account
    from account_store.accounts import Accounts
    from account_store.usage import Statement

Options = argparse.Namespace
Run = Callable[["Accounts", Options], Iterable[object]]


@dataclass(frozen=True)
class Command:
    """One command; `arguments` in the form of argparse."""

    help: str
    run: Run
    arguments: dict[str, dict[str, Any]] = field(default_factory=dict)


def _migrate(_accounts: Accounts, _options: Options) -> Iterable[object]:
    # Opening the database has migrated it already.
    return [{"revision": NEWEST}]


def _list_plans(accounts: Accounts, _options: Options) -> Iterable[object]:
    return accounts.plans.plans.values()


def _create_account(accounts: Accounts, options: Options) -> Iterable[Account]:
    return [accounts.create(options.name, options.plan, _read_terms(options))]


def _list_accounts(accounts: Accounts, _options: Options) -> Iterable[Account]:
    return accounts.list_all()


def _change_plan(accounts: Accounts, options: Options) -> Iterable[Account]:
    account = accounts.find_by_name(options.name)
    return [accounts.change_plan(account.account_id, options.plan, terms=_read_terms(options), is_yearly=options.yearly)]


def _set_card(accounts: Accounts, options: Options) -> Iterable[Account]:
    return [accounts.set_card(accounts.find_by_name(options.name).account_id, has_card=options.state == "on")]


def _create_key(accounts: Accounts, options: Options) -> Iterable[object]:
    rights = build_rights(options.scope or (), options.allow or (), _compute_expiry(accounts, options), is_test=options.test)
    created = accounts.keys.create(accounts.find_by_name(options.name).account_id, options.key, options.label, rights)
    return [{"key_id": created.key_id, "key": created.key, "note": _ONCE}]


def _list_keys(accounts: Accounts, options: Options) -> Iterable[object]:
    for one in accounts.keys.list_summaries(accounts.find_by_name(options.name).account_id):
        record = to_record(one)
        rights = to_record(record.pop("rights"))
        # Short lists fit a table; no list means no restriction.
        yield record | rights | {"scopes": [] if one.rights.scopes == ALL_SCOPES else rights["scopes"]}


def _compute_expiry(accounts: Accounts, options: Options) -> datetime | None:
    return None if options.days is None else accounts.clock() + options.days


def _show_audit(accounts: Accounts, options: Options) -> Iterable[object]:
    return accounts.audit.read_page(accounts.find_by_name(options.name).account_id, limit=options.limit, before=options.before)


def _rotate_key(accounts: Accounts, options: Options) -> Iterable[object]:
    created = accounts.keys.rotate(options.key_id, options.overlap_hours)
    return [{"key_id": created.key_id, "key": created.key, "replaces": options.key_id, "note": _ONCE}]


def _revoke_key(accounts: Accounts, options: Options) -> Iterable[object]:
    accounts.keys.revoke(options.key_id)
    return [{"key_id": options.key_id, "revoked": True}]


def _invite_user(accounts: Accounts, options: Options) -> Iterable[object]:
    user, password = accounts.users.invite(accounts.find_by_name(options.name).account_id, options.email)
    return [{"user_id": user.user_id, "email": user.email, "password": password, "note": _ONCE}]


def _reset_password(accounts: Accounts, options: Options) -> Iterable[object]:
    user, password = accounts.users.reset_password(options.email)
    return [{"user_id": user.user_id, "email": user.email, "password": password, "note": _ONCE}]


def _remove_second_factor(accounts: Accounts, options: Options) -> Iterable[object]:
    user = accounts.users.find_user(options.email)
    accounts.second_factor.switch_off(user)
    return [{"user_id": user.user_id, "email": user.email, "second_factor": False}]


def _show_usage(accounts: Accounts, options: Options) -> Iterable[Statement]:
    return [accounts.usage.read_month_now(accounts.find_by_name(options.name).account_id, options.month)]


def _list_suggestions(accounts: Accounts, options: Options) -> Iterable[object]:
    account_id = accounts.find_by_name(options.account).account_id if options.account else None
    status = None if options.status == "all" else options.status
    tracks = () if options.track is None else (options.track,)
    return accounts.suggestions.read_page(account_id=account_id, track_ids=tracks, status=status, limit=options.limit, after=options.after)


def _build_decision(status: str) -> Run:
    def decide(accounts: Accounts, options: Options) -> Iterable[object]:
        value = getattr(options, "value", None)
        return [accounts.suggestions.decide(options.suggestion_id, status, decided_by=options.by, value=value, note=options.note)]

    return decide


def _export_suggestions(accounts: Accounts, options: Options) -> Iterable[object]:
    text = accounts.suggestions.export()
    _replace(options.file, text)
    return [{"file": str(options.file), "suggestions": text.count("\n") - 1}]


def _list_webhooks(accounts: Accounts, options: Options) -> Iterable[object]:
    return accounts.webhooks.list_all(accounts.find_by_name(options.name).account_id)


def _seal_secrets(accounts: Accounts, _options: Options) -> Iterable[object]:
    return [{"webhooks": accounts.webhooks.seal_all()}]


def _replace_secret_key(accounts: Accounts, _options: Options) -> Iterable[object]:
    file, unreadable = accounts.replace_lost_key()
    return [{"file": str(file), "webhook_secrets_lost": unreadable}]


def _sweep(accounts: Accounts, _options: Options) -> Iterable[object]:
    return [{"reservations_returned": accounts.ledger.sweep()}]


def _read_terms(options: Options) -> Terms | None:
    figures = (options.credits, options.price_eur, options.requests_per_second)
    if figures == (None, None, None):
        return None
    if None in figures:
        raise InvalidValueError("agreed terms need all of --credits, --price-eur and --requests-per-second")
    return Terms(*figures)


def _build_number_parser(least: int, most: int) -> Callable[[str], int]:
    def parse_number(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,19}", text) or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")
        return int(text)

    return parse_number


def _build_span_parser(unit: timedelta) -> Callable[[str], timedelta]:
    most = _LONGEST_SPAN / unit

    def parse_span(text: str) -> timedelta:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        # The comparison is false for NaN, too.
        if not 0 <= number <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {most:.0f}")
        return number * unit

    return parse_span


def _parse_price(text: str) -> Decimal:
    try:
        price = Decimal(text).quantize(Decimal("0.01"))
    except InvalidOperation:
        price = Decimal("NaN")
    if not (price.is_finite() and 0 <= price <= LARGEST_FIGURE):
        raise argparse.ArgumentTypeError(f"{text!r} is not a price from 0 to {LARGEST_FIGURE}; write it as 49.90")
    return price


def _replace(file: Path, text: str) -> None:
    """Write the file atomically: a build that reads meanwhile sees the old one or the new one."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="", dir=file.parent, prefix=f".{file.name}.", delete=False) as part:
            part.write(text)
        # A temporary file is 0600: a build that runs as another user could not read the dump.
        Path(part.name).chmod(0o644)
        os.replace(part.name, file)  # noqa: PTH105 -- a name, not a Path
    except OSError as error:
        raise InvalidValueError(f"{file} cannot be written: {error}") from error


_ONCE = "shown once, never again"
_LONGEST_SPAN = timedelta(days=36_500)
_parse_figure, _parse_id, _parse_limit = (_build_number_parser(1, most) for most in (LARGEST_FIGURE, 2**63 - 1, 1_000_000))
_NAME: dict[str, dict[str, Any]] = {"name": {"help": "name of the account"}}
_EMAIL: dict[str, dict[str, Any]] = {"email": {"help": "e-mail with which the person signs in"}}
_KEY_ID: dict[str, dict[str, Any]] = {"key_id": {"type": _parse_id, "help": "see list-keys"}}
_TERMS: dict[str, dict[str, Any]] = {
    "--credits": {"type": _parse_figure, "metavar": "N", "help": "agreed credits a month (custom plan)"},
    "--price-eur": {"type": _parse_price, "metavar": "P", "help": "agreed price a month (custom plan)"},
    "--requests-per-second": {"type": _parse_figure, "metavar": "N", "help": "agreed rate (custom plan)"},
}
_DECISION: dict[str, dict[str, Any]] = {
    "suggestion_id": {"type": _parse_id, "help": "see list-suggestions"},
    "--by": {"default": "operator", "metavar": "NAME", "help": "who decides (default %(default)s)"},
    "--note": {"metavar": "TEXT", "help": "why"},
}

COMMANDS = {
    "migrate": Command("Bring the database to the newest revision (every other command and the server do so, too).", _migrate),
    "plans": Command("Show the table of plans.", _list_plans),
    "create-account": Command(
        "Create an account.", _create_account, _NAME | {"--plan": {"default": "free", "help": "see plans (default %(default)s)"}} | _TERMS
    ),
    "list-accounts": Command("Show all accounts.", _list_accounts),
    "change-plan": Command(
        "Change the plan of an account, at once.",
        _change_plan,
        _NAME | {"plan": {"help": "see plans"}, "--yearly": {"action": "store_true", "help": "billed by the year"}} | _TERMS,
    ),
    "set-card": Command(
        "Record whether a payment card is on file (streams need one).",
        _set_card,
        _NAME | {"state": {"choices": ["on", "off"], "help": "on file, or removed"}},
    ),
    "invite-user": Command("Let a person sign in to the dashboard of an account.", _invite_user, _NAME | _EMAIL),
    "reset-password": Command("Reset the password of a dashboard user; their sessions end.", _reset_password, _EMAIL),
    "remove-second-factor": Command(
        "Let a dashboard user sign in without a code, who has lost app and recovery codes.", _remove_second_factor, _EMAIL
    ),
    "create-key": Command(
        "Create an API key and show it, once.",
        _create_key,
        _NAME
        | {
            "--label": {"default": "", "help": "name by which its owner recognises the key"},
            "--key": {"help": "use this key instead of a random one (demos and tests only)"},
            "--scope": {"action": "append", "choices": SCOPES, "help": "what it may do; repeat for several (default: everything)"},
            "--days": {"type": _build_span_parser(timedelta(days=1)), "metavar": "N", "help": "days until it expires (default: never)"},
            "--allow": {"action": "append", "metavar": "CIDR", "help": "address or network that may use it; repeat (default: all)"},
            "--test": {"action": "store_true", "help": "a test key: a small fixed catalog, no credits"},
        },
    ),
    "list-keys": Command("Show the keys of an account (only their first characters).", _list_keys, _NAME),
    "rotate-key": Command(
        "Replace a live key by a new one.",
        _rotate_key,
        _KEY_ID
        | {
            "--overlap-hours": {
                "type": _build_span_parser(timedelta(hours=1)),
                "default": timedelta(0),
                "metavar": "H",
                "help": "hours that the old key stays valid (default 0)",
            }
        },
    ),
    "revoke-key": Command("Revoke a key; it is charged for nothing from now on.", _revoke_key, _KEY_ID),
    "audit": Command(
        "Show who changed keys, webhooks, streams, members and the plan of an account, newest first.",
        _show_audit,
        _NAME
        | {
            "--limit": {"type": _parse_limit, "default": 100, "metavar": "N", "help": "maximum number of entries (default %(default)s)"},
            "--before": {"type": _parse_id, "metavar": "ID", "help": "only entries with a smaller id"},
        },
    ),
    "usage": Command(
        "Show the credits that an account used in a month.",
        _show_usage,
        _NAME | {"--month": {"metavar": "YYYY-MM", "help": "default: the current month, UTC"}},
    ),
    "list-suggestions": Command(
        "Show suggestions, oldest first.",
        _list_suggestions,
        {
            "--status": {"default": PENDING, "choices": [*STATUSES, "all"], "help": "default %(default)s"},
            "--account": {"metavar": "NAME", "help": "only suggestions from this account"},
            "--track": {"type": _parse_id, "metavar": "ID", "help": "only suggestions for this track"},
            "--limit": {
                "type": _parse_limit,
                "default": 100,
                "metavar": "N",
                "help": "maximum number of suggestions (default %(default)s)",
            },
            "--after": {
                "type": _build_number_parser(0, 2**63 - 1),
                "default": 0,
                "metavar": "ID",
                "help": "only suggestions with a larger id",
            },
        },
    ),
    "approve-suggestion": Command(
        "Approve a pending suggestion.",
        _build_decision(APPROVED),
        _DECISION | {"--value": {"metavar": "TEXT", "help": "approve this value instead of the caller's"}},
    ),
    "reject-suggestion": Command("Reject a suggestion, pending or approved.", _build_decision(REJECTED), _DECISION),
    "export-suggestions": Command(
        "Write the approved genre suggestions as the dump that a build reads.",
        _export_suggestions,
        {"file": {"type": Path, "help": "e.g. dumps/suggestions/approved.csv"}},
    ),
    "list-webhooks": Command("Show the webhooks of an account and their state.", _list_webhooks, _NAME),
    "seal-secrets": Command("Encrypt the secrets of all webhooks again, by the first key.", _seal_secrets),
    "replace-secret-key": Command("Replace the key of webhook secrets when it is lost for good.", _replace_secret_key),
    "sweep": Command("Return the credits of expired reservations (a running server does so regularly).", _sweep),
}

"""Page of all commands with their options, out of the parsers of the command lines."""

from __future__ import annotations

import argparse
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import account_store.__main__ as accounts
import audio_recognition.__main__ as recognition
import catalog_api.__main__ as server
import catalog_api.jobs.__main__ as jobs
import catalog_store.__main__ as store
import genre_rules.__main__ as genres
import pipeline.__main__ as builds
import stream_monitor.__main__ as streams
import webhook_delivery.__main__ as webhooks
from catalog_store import scrub

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAMS = (builds, genres, store, scrub, server, jobs, accounts, webhooks, streams, recognition)


def render_commands_page() -> str:
    """Write the page. The environment of the caller does not show in its defaults."""
    with _hide_settings():
        programs = [_render_program(program.build_parser()) for program in PROGRAMS]
    return (
        "# Commands\n\n"
        "Look up a command and its options. Run them with `.venv/bin/python`; `--help` after any of them prints the same.\n"
        "[Operate](../guides/operate.md) and the other guides explain when to use them.\n"
        "This page is generated from the parsers of the command lines.\n\n" + "\n\n".join(programs) + "\n"
    )


@contextmanager
def _hide_settings() -> Iterator[None]:
    """Hide the variables from which some options take their defaults."""
    hidden = {name: os.environ.pop(name) for name in [*os.environ] if name.startswith("CATALOG_")}
    try:
        yield
    finally:
        os.environ.update(hidden)


def _render_program(parser: argparse.ArgumentParser) -> str:
    lines = [f"## {parser.prog.removeprefix('python -m ')}", "", f"`{parser.prog}`: {_read_first_paragraph(parser)}", ""]
    arguments = _list_arguments(parser)
    if arguments:
        lines += [*_render_arguments(arguments), ""]
    for name, (about, command) in _list_commands(parser).items():
        lines += [f"### {parser.prog.removeprefix('python -m ')} {name}", "", f"{about[:1].upper()}{about[1:].removesuffix('.')}.", ""]
        # Options that may also stand before the command are listed once, above.
        own = [argument for argument in _list_arguments(command) if argument.dest not in {one.dest for one in arguments}]
        if own:
            lines += [*_render_arguments(own), ""]
    return "\n".join(lines).rstrip()


def _list_commands(parser: argparse.ArgumentParser) -> dict[str, tuple[str, argparse.ArgumentParser]]:
    """Return help and parser of each command."""
    # argparse has no public way to list its arguments; tools that document parsers read `_actions`, too.
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            about = {choice.dest: choice.help or "" for choice in action._choices_actions}  # noqa: SLF001
            return {name: (about.get(name, ""), command) for name, command in action.choices.items()}
    return {}


def _list_arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    hidden = (argparse._SubParsersAction, argparse._HelpAction)  # noqa: SLF001
    return [action for action in parser._actions if not isinstance(action, hidden)]  # noqa: SLF001


def _render_arguments(arguments: list[argparse.Action]) -> list[str]:
    return ["| Argument | Meaning |", "|---|---|", *(f"| {_render_name(one)} | {_render_meaning(one)} |" for one in arguments)]


def _render_name(argument: argparse.Action) -> str:
    values = "\\|".join(map(str, argument.choices)) if argument.choices else None
    name = argument.metavar if isinstance(argument.metavar, str) else values or argument.dest.upper()
    if not argument.option_strings:
        return f"`{name}`"
    takes_value = argument.nargs != 0
    return ", ".join(f"`{option}{f' {name}' if takes_value else ''}`" for option in argument.option_strings)


def _render_meaning(argument: argparse.Action) -> str:
    meaning = (argument.help or "").replace("%(default)s", str(argument.default)).replace("%%", "%").replace("|", "\\|")
    # Markdown takes `<id>` outside of code for a tag and drops it.
    meaning = "`".join(part if place % 2 else part.replace("<", "&lt;") for place, part in enumerate(meaning.split("`")))
    notes = []
    if argument.required and argument.option_strings:
        notes.append("required")
    if argument.choices and argument.metavar:
        notes.append("one of " + ", ".join(f"`{choice}`" for choice in argument.choices))
    return "; ".join([*([meaning] if meaning else []), *notes])


def _read_first_paragraph(parser: argparse.ArgumentParser) -> str:
    """Return the first paragraph of a parser's description, without the name of the command at its beginning."""
    text = " ".join((parser.description or "").split("\n\n", maxsplit=1)[0].split())
    return text.removeprefix(f"`{parser.prog}`").lstrip(": ").rstrip(".") + "."

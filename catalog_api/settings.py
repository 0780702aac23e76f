"""What an operator can set for the API server: each setting with its default and what it is for.

A setting is said, from weak to strong: by its default, by the file (TOML, named by `--settings` or CATALOG_API_SETTINGS), by the
environment (CATALOG_API_<NAME>), by an option of `python -m catalog_api serve`. `python -m catalog_api settings` prints all of them with
their values, as a file that can be used. Add a setting here with its description, and run `make docs`. What must not live here: settings of
a build (pipeline/settings.py).
"""

from __future__ import annotations

import tomllib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_type_hints

import msgspec

from catalog_api.server.connection_registry import parse_networks
from catalog_store.platforms import URL_TEMPLATES
from yaml_documents import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "CATALOG_API_"
FILE_VARIABLE = "CATALOG_API_SETTINGS"
"""Names the file. Not a setting itself."""
Level = Literal["debug", "info", "warning", "error"]
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
CountOrNone = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
"""A day at most: `inf` would be no limit at all."""


class SettingsError(Exception):
    """A setting that is unknown or has a value it cannot have; the message names it and where it was said."""


@dataclass(frozen=True)
class ApiSettings:
    """Every setting of the server."""

    catalog: Annotated[Path, "Catalog folder that `pipeline build` publishes into; its live snapshot is served and followed."] = Path(
        "catalog"
    )
    accounts_url: Annotated[str, "Database of accounts and credits, as a SQLAlchemy URL: SQLite or PostgreSQL."] = "sqlite:///accounts.db"
    rate_limits_url: Annotated[
        str, "Where rate limits are counted: `memory://` over the workers of this server, `redis://host:6379` over several machines."
    ] = "memory://"
    unknown_keys_per_minute: Annotated[
        CountOrNone, "Unknown keys that one address (IPv6: /64) may try in a minute; further ones are answered 429. 0: any number."
    ] = 60
    streams_per_account: Annotated[Count, "Active streams of one account; a further one is answered 403 `stream_limit`."] = 50
    host: Annotated[str, "Address to listen on."] = "127.0.0.1"
    port: Annotated[Port, "Port to listen on."] = 8000
    workers: Annotated[Count, "Worker processes; one per core that the server may use."] = 1
    metrics_host: Annotated[str, "Address that Prometheus metrics are served on: not the public one."] = "127.0.0.1"
    metrics_port: Annotated[Port, "Port of the metrics, `/metrics`; 0 serves none."] = 0
    log_level: Annotated[Level, "The least level of the lines on standard error."] = "info"
    log_requests: Annotated[bool, "Whether each request is a line of the log (of level info)."] = True
    look_seconds: Annotated[Seconds, "How often the server looks whether another snapshot is live."] = 1.0
    stale_seconds: Annotated[
        Seconds, "A worker that has served another snapshot than `current` names for so long says so on `/readyz`; it goes on answering."
    ] = 300.0
    verify_contents: Annotated[
        bool, "Read a new snapshot's serving files through before they are used (about 1 s per GB); else sizes only."
    ] = True
    scrub_mb_per_second: Annotated[
        float, msgspec.Meta(ge=0), "How fast one process reads all files of the live snapshot through, beside the workers; 0: not at all."
    ] = 20.0
    scrub_pause_seconds: Annotated[Seconds, "How long that process rests between two rounds."] = 3600.0
    shutdown_seconds: Annotated[Count, "How long requests under way may take to finish when the server is stopped."] = 30
    head_seconds: Annotated[Seconds, "A request's head must have arrived after so long."] = 10.0
    body_seconds: Annotated[Seconds, "A body that has not arrived by then must go on at 4 KiB a second or more."] = 10.0
    read_seconds: Annotated[Seconds, "A client that takes less than 4 KiB a second of its answer for so long is cut off."] = 20.0
    idle_seconds: Annotated[Seconds, "A connection without a request is closed after so long; more than the load balancer's own limit."] = (
        65.0
    )
    connections: Annotated[
        Count, "Open connections per worker; for one more an idle one is closed, else it is answered 503. Each needs a file handle."
    ] = 4096
    connections_per_address: Annotated[
        Count, "The same of one client's address (of IPv6 a /64) per worker: its own idle ones give way first."
    ] = 512
    proxies: Annotated[
        str,
        "Load balancers' addresses or networks, separated by commas: `connections_per_address` is not for them, they count their clients.",
    ] = ""
    matcher: Annotated[bool, "Whether the matcher process of `/v1/tracks/identify` is started beside the workers."] = True
    matcher_socket: Annotated[
        str, "Unix socket of the matcher. Empty: in a temporary folder; say one if other programs ask it too, or if it is run alone."
    ] = ""
    monitors: Annotated[CountOrNone, "Monitor workers of live streams started beside the workers; each does one core's work."] = 1
    monitor_capacity: Annotated[Count, "Streams that each monitor worker takes at most."] = 150
    uploads: Annotated[Count, "Audio uploads per worker that may be here at once, each of up to 100 MB; more are answered 503."] = 8
    upload_folder: Annotated[str, "Where uploads are kept while they are listened to. Empty: the system's folder for temporary files."] = ""
    upload_seconds: Annotated[Seconds, "How long one upload may take to arrive."] = 120.0
    webhooks: Annotated[bool, "Whether a process that sends webhooks is started beside the workers."] = True
    dashboard: Annotated[bool, "Whether the dashboard for key holders is served, at `/dashboard`."] = True
    dashboard_sign_up: Annotated[bool, "Whether people may sign up there; else only who has an account gets in."] = True
    dashboard_origin: Annotated[
        str, "Where browsers see the dashboard, `https://host`: forms from elsewhere are refused. Empty: whatever host they ask."
    ] = ""
    client_address_header: Annotated[
        str, "Header whose last value is the client's address, as the load balancer in front writes it. Empty: the connection's address."
    ] = ""
    url_templates: Annotated[dict[str, str], "Per platform the address of a link, with `{id}` and, where it has one, `{slug}`."] = field(
        default_factory=lambda: dict(URL_TEMPLATES)
    )


@dataclass(frozen=True)
class _Kind:
    """Type of a setting and what it is for."""

    type: Any
    about: str


def _kinds() -> dict[str, _Kind]:
    hints = get_type_hints(ApiSettings, include_extras=True)
    return {name: _Kind(_without_about(hint), get_args(hint)[-1]) for name, hint in hints.items()}


def _without_about(hint: Any) -> Any:  # noqa: ANN401 - a type
    kind, *bounds = get_args(hint)[:-1]
    return Annotated[kind, *bounds] if bounds else kind


def load_settings(environment: Mapping[str, str], options: Mapping[str, object] | None = None) -> ApiSettings:
    """Settings out of a file, the environment and `options` (None: not said; `settings` names the file). SettingsError."""
    said = {name: value for name, value in (options or {}).items() if value is not None}
    file = said.pop("settings", None) or environment.get(FILE_VARIABLE)
    values: dict[str, Any] = {}
    if file:
        values |= _of_file(Path(str(file)))
    values |= _of_environment(environment)
    values |= {name: _converted(name, value, "the command line") for name, value in said.items()}
    return ApiSettings(**values)


def as_environment(settings: ApiSettings) -> dict[str, str]:
    """The environment that makes `load_settings` give these settings again: how they reach the workers."""
    texts = {
        name: msgspec.json.encode(value).decode() if isinstance(value, dict) else str(value) for name, value in asdict(settings).items()
    }
    return {variable(name): text for name, text in texts.items()}


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


def as_file(settings: ApiSettings) -> str:
    """All settings with their descriptions, as the file that says them."""
    lines: list[str] = []
    kinds = _kinds()
    for name, value in asdict(settings).items():
        lines.append(f"# {kinds[name].about}")
        # The one table stands last, as TOML wants it.
        if isinstance(value, dict):
            lines += [f"[{name}]", *(f"{key} = {_toml(part)}" for key, part in value.items())]
        else:
            lines += [f"{name} = {_toml(value)}", ""]
    return "\n".join(lines) + "\n"


def settings_page() -> str:
    """docs/reference/settings.md."""
    rows = []
    kinds = _kinds()
    for name, value in asdict(ApiSettings()).items():
        default = "one per platform" if isinstance(value, dict) else f"`{_toml(value)}`"
        choices = "".join(f" `{choice}`" for choice in get_args(kinds[name].type) if isinstance(choice, str))
        rows.append(f"| `{name}` | `{variable(name)}` | {default} | {kinds[name].about}{choices and ' One of' + choices + '.'} |")
    return _PAGE_HEAD + "\n".join(rows) + "\n"


_PAGE_HEAD = """# Settings of the server

Said, from weak to strong: by default, in a TOML file (`--settings FILE` or `CATALOG_API_SETTINGS=FILE`), in the environment, by an option
of `python -m catalog_api serve`. `python -m catalog_api settings` prints those in force as such a file. A name that is no setting is an
error. This page is generated from `catalog_api/settings.py`.

| name | variable | default | meaning |
|---|---|---|---|
"""


def _of_file(file: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} is not TOML: {error}") from error
    return {name: _converted(name, value, str(file)) for name, value in content.items()}


def _of_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    said = {name.removeprefix(PREFIX).lower(): text for name, text in environment.items() if name.startswith(PREFIX)}
    said.pop(FILE_VARIABLE.removeprefix(PREFIX).lower(), None)
    return {name: _converted(name, text, variable(name)) for name, text in said.items()}


def _converted(name: str, value: object, place: str) -> Any:  # noqa: ANN401 - the setting's type
    kind = _kinds().get(name)
    if kind is None:
        raise SettingsError(f"{place}: there is no setting {name!r}{nearest(name, _kinds())}; `python -m catalog_api settings` lists them")
    try:
        if isinstance(value, str) and name == "url_templates":
            value = msgspec.json.decode(value)
        if kind.type is Path:
            return Path(msgspec.convert(value, str))
        converted = msgspec.convert(value.lower() if isinstance(value, str) and kind.type is bool else value, kind.type, strict=False)
    except msgspec.MsgspecError as error:
        raise SettingsError(f"{place}: {name} = {value!r}: {error}") from error
    if name == "proxies":
        try:
            parse_networks(str(converted))
        except ValueError as error:
            raise SettingsError(f"{place}: proxies = {value!r}: {error}; name addresses or networks, as in 10.0.0.5, fd00::/64") from error
    return _templates(converted, place) if name == "url_templates" else converted


def _templates(said: dict[str, str], place: str) -> dict[str, str]:
    unknown = sorted(set(said) - set(URL_TEMPLATES))
    broken = sorted(name for name, template in said.items() if "{id}" not in template)
    if unknown or broken:
        raise SettingsError(f"{place}: url_templates: unknown platforms {unknown}, templates without {{id}} {broken}")
    return {**URL_TEMPLATES, **said}


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    return msgspec.json.encode(str(value)).decode()

"""The settings of the API server, each with its default and its purpose.

Sources, from weak to strong: the default, the file (TOML, named by `--settings` or CATALOG_API_SETTINGS), the environment
(CATALOG_API_<NAME>), an option of `python -m catalog_api serve`. `python -m catalog_api settings` prints all with their values, as a usable
file. Add a setting here with its description and run `make docs`. Out of scope: settings of a build (pipeline/settings.py).
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_type_hints

import msgspec

from catalog_api.server.connection_registry import parse_networks
from catalog_store.platforms import URL_TEMPLATES
from yaml_documents import suggest_nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "CATALOG_API_"
FILE_VARIABLE = "CATALOG_API_SETTINGS"
"""Names the settings file; not a setting itself."""
_HOST = r"(?:\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]]+)(?::[0-9]{1,5})?"
_FORMS = {
    "mail_server": (re.compile(rf"smtps?://(?:[^\s/]*@)?{_HOST}"), "smtp://host:port or smtps://user:password@host:port"),
    "mail_sender": (re.compile(r"[^\s<>@]+@[^\s<>@]+|[^<>@\r\n]*<[^\s<>@]+@[^\s<>@]+>"), "name@host or Name <name@host>"),
    "dashboard_origin": (re.compile(rf"https?://{_HOST}/?"), "https://host"),
    "client_address_header": (re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"), "X-Forwarded-For: one name without blanks"),
}
"""Settings whose text has a form, and how to say it. An empty text stands for none."""
Level = Literal["debug", "info", "warning", "error"]
Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
CountOrNone = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
"""A day at most, because `inf` would be no limit."""


class SettingsError(Exception):
    """An unknown setting or a wrong value; the message names it and its source."""


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
        CountOrNone, "Unknown keys that one address (IPv6: /64) may try in a minute; the answer to more is 429. 0: no limit."
    ] = 60
    streams_per_account: Annotated[Count, "Active streams of one account; the answer to one more is 403 `stream_limit`."] = 50
    host: Annotated[str, "Address to listen on."] = "127.0.0.1"
    port: Annotated[Port, "Port to listen on."] = 8000
    workers: Annotated[Count, "Worker processes; one per core that the server may use."] = 1
    metrics_host: Annotated[str, "Address of the Prometheus metrics; it should not be public."] = "127.0.0.1"
    metrics_port: Annotated[Port, "Port of the metrics, `/metrics`; 0 serves none."] = 0
    log_level: Annotated[Level, "The minimum level of the lines on standard error."] = "info"
    log_requests: Annotated[bool, "Whether each request is a line of the log (of level info)."] = True
    look_seconds: Annotated[Seconds, "How often the server checks whether another snapshot is live."] = 1.0
    stale_seconds: Annotated[
        Seconds, "A worker that serves another snapshot than `current` names for longer reports it on `/readyz`, and goes on answering."
    ] = 300.0
    verify_contents: Annotated[
        bool, "Verify the contents of a new snapshot's serving files before use (about 1 s per GB); else only their sizes."
    ] = True
    scrub_mb_per_second: Annotated[
        float, msgspec.Meta(ge=0), "How fast one process verifies all files of the live snapshot, beside the workers; 0: not at all."
    ] = 20.0
    scrub_pause_seconds: Annotated[Seconds, "The pause of that process between two rounds."] = 3600.0
    shutdown_seconds: Annotated[Count, "The time that requests under way get to finish when the server stops."] = 30
    head_seconds: Annotated[Seconds, "The time within which the head of a request must arrive."] = 10.0
    body_seconds: Annotated[Seconds, "A body that takes longer must keep arriving at 4 KiB a second or more."] = 10.0
    read_seconds: Annotated[Seconds, "A client that reads less than 4 KiB a second of its answer for longer is disconnected."] = 20.0
    idle_seconds: Annotated[Seconds, "The time after which an idle connection is closed. It must exceed the load balancer's own limit."] = (
        65.0
    )
    connections: Annotated[
        Count,
        "Open connections per worker. For one more, an idle one is closed; if none is idle, the answer is 503. Each needs a file handle.",
    ] = 4096
    connections_per_address: Annotated[
        Count, "Open connections of one client address (IPv6: /64) per worker. For one more, an idle one of the address is closed."
    ] = 512
    proxies: Annotated[
        str,
        "Addresses or networks of load balancers, separated by commas. `connections_per_address` does not apply to them.",
    ] = ""
    matcher: Annotated[bool, "Whether the matcher process of `/v1/tracks/identify` is started beside the workers."] = True
    matcher_socket: Annotated[
        str, "Unix socket of the matcher. Empty: in a temporary folder. Name one if other programs use the matcher, or if it runs alone."
    ] = ""
    monitors: Annotated[CountOrNone, "Monitor workers of live streams, started beside the workers; each uses one core."] = 1
    monitor_capacity: Annotated[Count, "Maximum number of streams of each monitor worker."] = 150
    uploads: Annotated[Count, "Concurrent audio uploads per worker, each of up to 100 MB; for more the answer is 503."] = 8
    upload_folder: Annotated[str, "Where uploads are stored while they are recognised. Empty: the system's folder for temporary files."] = (
        ""
    )
    upload_seconds: Annotated[Seconds, "The time within which an upload must arrive."] = 120.0
    job_workers: Annotated[
        CountOrNone, "Processes that work on bulk jobs, started beside the workers. They yield to requests; each uses up to one core."
    ] = 1
    jobs_folder: Annotated[
        Path, "Where input and results of bulk jobs are stored. All servers of one account store share it. Results stay for a week."
    ] = Path("jobs")
    jobs_free_mb: Annotated[
        CountOrNone, "Disk space that uploads of jobs leave free in that folder, in MB; below it they get 503 `jobs_unavailable`."
    ] = 1_000
    webhooks: Annotated[bool, "Whether a process that sends webhooks is started beside the workers."] = True
    dashboard: Annotated[bool, "Whether the dashboard for key holders is served, at `/dashboard`."] = True
    dashboard_sign_up: Annotated[bool, "Whether people may sign up there; else only people with an account can sign in."] = True
    dashboard_origin: Annotated[
        str, "The origin of the dashboard, `https://host`; forms from elsewhere are refused. Empty: the host of the request."
    ] = ""
    mail_server: Annotated[
        str,
        "Server that takes the dashboard's mails (password resets, invitations): `smtp://host:port` (STARTTLS where it is offered) or"
        " `smtps://user:password@host:port`. They need `dashboard_origin`. Empty: no mails are sent.",
    ] = ""
    mail_sender: Annotated[str, "Sender of these mails."] = "music-catalog@localhost"
    client_address_header: Annotated[
        str, "Header in which the load balancer writes the client's address as its last value. Empty: the address of the connection."
    ] = ""
    url_templates: Annotated[
        dict[str, str],
        "The URL of a link for each platform, with `{id}` and, where the platform has one, `{slug}`. One of another site also replaces the"
        " addresses that `/v1/tracks/links?url=` knows for the platform.",
    ] = field(default_factory=dict)


@dataclass(frozen=True)
class _SettingType:
    """The type and the purpose of a setting."""

    type: Any
    about: str


def _read_setting_types() -> dict[str, _SettingType]:
    # The last annotation of each field is its description.
    hints = get_type_hints(ApiSettings, include_extras=True)
    return {name: _SettingType(_strip_description(hint), get_args(hint)[-1]) for name, hint in hints.items()}


def _strip_description(hint: Any) -> Any:  # noqa: ANN401 - a type
    kind, *bounds = get_args(hint)[:-1]
    return Annotated[kind, *bounds] if bounds else kind


def load_settings(environment: Mapping[str, str], options: Mapping[str, object] | None = None) -> ApiSettings:
    """Load settings from a file, the environment and `options` (None: not given; `settings` names the file). SettingsError."""
    chosen = {name: value for name, value in (options or {}).items() if value is not None}
    file = chosen.pop("settings", None) or environment.get(FILE_VARIABLE)
    values: dict[str, Any] = {}
    if file:
        values |= _read_file(Path(str(file)))
    values |= _read_environment(environment)
    values |= {name: _convert(name, value, "the command line") for name, value in chosen.items()}
    return ApiSettings(**values)


def to_environment(settings: ApiSettings) -> dict[str, str]:
    """Return the environment from which `load_settings` gets these settings again; the workers receive it."""
    texts = {
        name: msgspec.json.encode(value).decode() if isinstance(value, dict) else str(value) for name, value in asdict(settings).items()
    }
    return {build_variable_name(name): text for name, text in texts.items()}


def build_variable_name(name: str) -> str:
    """Return the environment variable of a setting."""
    return PREFIX + name.upper()


def format_settings_file(settings: ApiSettings) -> str:
    """Format all settings with their descriptions as a settings file."""
    lines: list[str] = []
    kinds = _read_setting_types()
    for name, value in asdict(settings).items():
        lines.append(f"# {kinds[name].about}")
        # TOML wants the only table at the end.
        if isinstance(value, dict):
            lines += [f"[{name}]", *(f"{key} = {_format_toml(part)}" for key, part in value.items())]
        else:
            lines += [f"{name} = {_format_toml(value)}", ""]
    return "\n".join(lines) + "\n"


def render_settings_page() -> str:
    """Render docs/reference/settings.md."""
    rows = []
    kinds = _read_setting_types()
    for name, value in asdict(ApiSettings()).items():
        default = "one per platform" if isinstance(value, dict) else f"`{_format_toml(value)}`"
        choices = "".join(f" `{choice}`" for choice in get_args(kinds[name].type) if isinstance(choice, str))
        rows.append(
            f"| `{name}` | `{build_variable_name(name)}` | {default} | {kinds[name].about}{choices and ' One of' + choices + '.'} |"
        )
    return _PAGE_HEAD + "\n".join(rows) + "\n"


_PAGE_HEAD = """# Settings of the server

Sources, in increasing precedence: the default, a TOML file (`--settings FILE` or `CATALOG_API_SETTINGS=FILE`), the environment, an
option of `python -m catalog_api serve`. `python -m catalog_api settings` prints the settings in force as such a file. An unknown name is
an error.
This page is generated from `catalog_api/settings.py`.

| name | variable | default | meaning |
|---|---|---|---|
"""


def _read_file(file: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"the settings file {file} cannot be read: {error.strerror}; check --settings and {FILE_VARIABLE}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"the settings file {file} is not TOML: {error}") from error
    return {name: _convert(name, value, str(file)) for name, value in content.items()}


def _read_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    texts = {name.removeprefix(PREFIX).lower(): text for name, text in environment.items() if name.startswith(PREFIX)}
    # It has the prefix, but is not a setting.
    texts.pop(FILE_VARIABLE.removeprefix(PREFIX).lower(), None)
    return {name: _convert(name, text, build_variable_name(name)) for name, text in texts.items()}


def _convert(name: str, value: object, place: str) -> Any:  # noqa: ANN401 - the setting's type
    kind = _read_setting_types().get(name)
    if kind is None:
        raise SettingsError(
            f"{place}: there is no setting {name!r}{suggest_nearest(name, _read_setting_types())}; "
            "`python -m catalog_api settings` lists them"
        )
    try:
        # The environment holds texts only; `to_environment` writes this one as JSON.
        if isinstance(value, str) and name == "url_templates":
            value = msgspec.json.decode(value)
        if kind.type is Path:
            return Path(msgspec.convert(value, str))
        # In lower case: `to_environment` writes True, and msgspec reads true. Not strict: the environment writes numbers as
        # texts.
        converted = msgspec.convert(value.lower() if isinstance(value, str) and kind.type is bool else value, kind.type, strict=False)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise SettingsError(f"{place}: {name} = {value!r}: {error}") from error
    if name in _FORMS and converted:
        form, said = _FORMS[name]
        if not form.fullmatch(str(converted)):
            # The address of a mail server may hold a password, so the message leaves it out.
            shown = "" if name == "mail_server" else f" = {value!r}"
            raise SettingsError(f"{place}: {name}{shown} is not of the form {said}")
    if name == "proxies":
        try:
            parse_networks(str(converted))
        except ValueError as error:
            raise SettingsError(f"{place}: proxies = {value!r}: {error}; name addresses or networks, as in 10.0.0.5, fd00::/64") from error
    return _check_templates(converted, place) if name == "url_templates" else converted


def _check_templates(templates: dict[str, str], place: str) -> dict[str, str]:
    unknown = sorted(set(templates) - set(URL_TEMPLATES))
    if unknown:
        raise SettingsError(f"{place}: url_templates has unknown platforms {unknown}; there are {', '.join(sorted(URL_TEMPLATES))}")
    for name, template in templates.items():
        rest = template.replace("{id}", "").replace("{slug}", "")
        if not re.fullmatch(r"https?://\S+", template) or "{id}" not in template or "{" in rest or "}" in rest:
            raise SettingsError(
                f"{place}: url_templates: {name} = {template!r}: write https://..., with {{id}} and no other braces but those of {{slug}}"
            )
    return templates


def _format_toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    return msgspec.json.encode(str(value)).decode()

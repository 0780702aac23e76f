"""The parameters of routes, each with the one function that reads it and the schema that describes it.

A route declares its parameters. `read_parameters` reads all of them at once and collects every problem, so that one answer names all
(contract A5). Limits come from the specification, part 8. Out of scope: bodies (request_bodies.py), queries.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast
from urllib.parse import unquote_to_bytes
from zoneinfo import ZoneInfo, available_timezones

from account_store.webhooks.outbox import DELIVERY_STATUSES
from catalog_api.problems import ApiError, ParameterProblem
from catalog_store.identifiers import BARCODE_SHAPE, UUID_SHAPE, normalise_iswc, parse_gtin, parse_isrc
from catalog_store.platform_files import Platform
from catalog_store.platforms import PLATFORMS
from catalog_store.queries.track_search import LOWEST_CLASS
from catalog_store.search.reranker import MATCH_CLASSES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T = TypeVar("T")

TEXT_CHARACTERS = 500
"""The maximum of artist, title, label and genre (contract C1)."""
URL_CHARACTERS = 2_000
VISIBLE = r"[^\x00-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]"
"""One character that is not blank. It is spelled out because `\\s` differs between Python and JSON Schema, which callers check by."""
_VISIBLE = re.compile(VISIBLE)
URL_PATTERN = rf"^https?://{VISIBLE}+$"
_TRACK_URL_PATTERN = rf"^(?:[Hh][Tt][Tt][Pp][Ss]?://|[a-z]+:[a-z]+:){VISIBLE}+$"
LARGEST_ID = 2**63 - 1
YEARS = (1860, 2100)
"""The first sound was recorded in 1860."""

_SHOWN = 60


class Parameter(Generic[T]):
    """One parameter of a route. It is a key: `values[PARAMETER]` is its value."""

    def __init__(
        self,
        name: str,
        reader: Callable[[str], T],
        schema: Mapping[str, Any],
        description: str,
        *,
        default: T | None = None,
        is_required: bool = False,
        place: str = "query",
    ) -> None:
        """`reader` converts text or raises ValueError with a message for the caller; `schema` is JSON Schema."""
        self.name = name
        self.reader = reader
        self.schema = schema
        self.description = description
        self.default = default
        self.is_required = is_required
        self.place = place


class ParameterValues:
    """The checked parameters of one request."""

    __slots__ = ("_group", "_values")

    def __init__(self, values: dict[Parameter[Any], Any], group: Sequence[Parameter[Any]] = ()) -> None:
        """`values` of the parameters that were sent; `group`: those of which exactly one may be sent."""
        self._values = values
        self._group = group

    def __getitem__(self, parameter: Parameter[T]) -> T:
        """Return the value; the default (or None) when it was not sent."""
        return cast("T", self._values.get(parameter, parameter.default))

    def find_sent(self) -> Parameter[Any]:
        """Return the one parameter of the route's group `exactly_one` that was sent."""
        return next(parameter for parameter in self._group if parameter in self._values)


def read_parameters(
    declared: Sequence[Parameter[Any]],
    exactly_one: Sequence[Parameter[Any]],
    scope: Any,  # noqa: ANN401 - an HTTP scope
    *,
    is_strict: bool,
) -> tuple[ParameterValues, list[ParameterProblem]]:
    """Read all `declared` parameters of a request and their problems. With `is_strict`, unknown query parameters are problems too."""
    problems: list[ParameterProblem] = []
    sent: dict[str, bytes] = {}
    for name, raw in _split_query(scope["query_string"]):
        # Only for declared parameters: unknown ones are ignored (contract A7).
        if name in sent and any(name == parameter.name for parameter in declared):
            problems.append(ParameterProblem("query", name, "is sent more than once"))
        sent[name] = raw
    values: dict[Parameter[Any], Any] = {}
    for parameter in declared:
        value = sent.pop(parameter.name, None) if parameter.place == "query" else _read_outside_query(parameter, scope)
        if value is not None:
            try:
                values[parameter] = parameter.reader(value if isinstance(value, str) else _decode_utf8(value))
            except ValueError as error:
                # The default stands in: checks of several parameters still run, and a group does not call it missing.
                values[parameter] = parameter.default
                problems.append(ParameterProblem(parameter.place, parameter.name, str(error)))
        elif parameter.is_required:
            problems.append(ParameterProblem(parameter.place, parameter.name, "is required"))
    if exactly_one:
        problems += _find_group_problems(exactly_one, values)
    if is_strict:
        problems += [ParameterProblem("query", name[:_SHOWN], "is unknown, and the request prefers strict handling") for name in sent]
    return ParameterValues(values, exactly_one), problems


def _split_query(query_string: bytes) -> Iterator[tuple[str, bytes]]:
    """Split like `parse_qsl`, but into bytes and in half the time; the reader of each value checks that it is UTF-8."""
    # A plus sign means a blank, except one that is escaped as %2B: replace before unquoting.
    for pair in query_string.replace(b"+", b" ").split(b"&"):
        if pair:
            name, _, value = pair.partition(b"=")
            if b"%" in pair:
                name, value = unquote_to_bytes(name), unquote_to_bytes(value)
            # A name that is not UTF-8 matches no parameter, and unknown names are ignored.
            yield name.decode(errors="replace"), value


def _read_outside_query(parameter: Parameter[Any], scope: Any) -> str | None:  # noqa: ANN401 - an HTTP scope
    if parameter.place == "path":
        value: str | None = scope["path_params"].get(parameter.name)
        return value
    name = parameter.name.lower().encode()
    return ", ".join(value.decode("latin-1") for key, value in scope["headers"] if key == name) or None


def _find_group_problems(group: Sequence[Parameter[Any]], values: Mapping[Parameter[Any], Any]) -> list[ParameterProblem]:
    sent = [parameter for parameter in group if parameter in values]
    if len(sent) == 1:
        return []
    names = ", ".join(parameter.name for parameter in group)
    return [ParameterProblem("query", one.name, f"exactly one of {names} must be sent, got {len(sent)}") for one in sent or group]


def raise_problems(problems: Sequence[ParameterProblem]) -> None:
    """Raise ApiError `invalid_parameter` that names every problem, if there is any."""
    if problems:
        names = ", ".join(dict.fromkeys(problem.name for problem in problems))
        raise ApiError("invalid_parameter", f"Invalid or missing: {names}.", tuple(problems))


def _decode_utf8(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise ValueError("must be UTF-8") from None


def _quote(value: str) -> str:
    return ascii(value[:_SHOWN])


def _read_text(value: str) -> str:
    if not _VISIBLE.search(value):
        raise ValueError("must not be blank")
    if len(value) > TEXT_CHARACTERS:
        raise ValueError(f"must have at most {TEXT_CHARACTERS} characters, got {len(value)}")
    return value


def _build_number_reader(smallest: int, largest: int) -> Callable[[str], int]:
    def read_number(value: str) -> int:
        # `int` also takes signs, blanks, underscores and digits of other scripts. LARGEST_ID has 19 digits.
        if not re.fullmatch(r"[0-9]{1,19}", value) or not smallest <= int(value) <= largest:
            raise ValueError(f"must be a whole number from {smallest} to {largest}, got {_quote(value)}")
        return int(value)

    return read_number


def _read_url(value: str) -> str:
    """Accept an address of any site: one of no platform is simply unknown."""
    if len(value) > URL_CHARACTERS or not re.fullmatch(_TRACK_URL_PATTERN, value):
        raise ValueError(
            f"must be an http or https address, or an app's `name:track:id`, of at most {URL_CHARACTERS} characters; got {_quote(value)}"
        )
    return value


def _read_isrc(value: str) -> str:
    code = parse_isrc(value)
    if code is None:
        raise ValueError(f"must be two letters, three letters or digits and seven digits; got {_quote(value)}")
    return code


def _read_iswc(value: str) -> str:
    """Accept any check digit: a wrong code is simply unknown (contract B9)."""
    code = normalise_iswc(value)
    if code is None:
        raise ValueError(f"must be the letter T and ten digits, got {_quote(value)}")
    return code


def _read_barcode(value: str) -> str:
    """Accept any check digit, as for ISWCs."""
    code = parse_gtin(value)
    if code is None:
        raise ValueError(f"must be 8 to 14 digits, got {_quote(value)}")
    return code


_FLAGS = {"true": True, "1": True, "false": False, "0": False}


def _read_flag(value: str) -> bool:
    """Accept any case, so that the booleans of programming languages, such as `True`, are understood."""
    flag = _FLAGS.get(value.lower())
    if flag is None:
        raise ValueError(f"must be true or false, got {_quote(value)}")
    return flag


def normalise_external_id(platform: Platform, value: str) -> str:
    """Return the id in its stored spelling; ValueError when it does not have the platform's shape."""
    # UUIDs are stored in lower case; ids of streamsvc_a differ by case.
    candidate = value.strip().lower() if platform.id_shape == UUID_SHAPE else value.strip()
    if not re.fullmatch(platform.id_shape, candidate):
        raise ValueError(f"must be an id of {platform.key}, got {_quote(value)}")
    return candidate


class PlatformParameter(Parameter[str]):
    """The parameter that names a track by its id on a platform."""

    def __init__(self, platform: Platform) -> None:
        """`platform` says how its ids look."""
        is_uuid = platform.id_shape == UUID_SHAPE
        schema = {"type": "string", "format": "uuid"} if is_uuid else {"type": "string", "pattern": platform.id_shape}
        super().__init__(f"{platform.key}_id", lambda value: normalise_external_id(platform, value), schema, platform.id_description)
        self.platform = platform.key


def _build_id_parameter(name: str, description: str, place: str = "query") -> Parameter[int]:
    schema = {"type": "integer", "minimum": 1, "maximum": LARGEST_ID}
    return Parameter(name, _build_number_reader(1, LARGEST_ID), schema, description, place=place, is_required=place == "path")


def _build_limit_parameter(smallest: int, largest: int, default: int) -> Parameter[int]:
    schema = {"type": "integer", "minimum": smallest, "maximum": largest, "default": default}
    return Parameter("limit", _build_number_reader(smallest, largest), schema, "Items on a page.", default=default)


_TEXT = {"type": "string", "minLength": 1, "maxLength": TEXT_CHARACTERS, "pattern": VISIBLE}
_ISRC_SCHEMA = {"type": "string", "pattern": r"^[A-Za-z]{2}-?[A-Za-z0-9]{3}-?[0-9]{2}-?[0-9]{5}$", "examples": ["GBAYE0601498"]}
_ISWC_SCHEMA = {"type": "string", "pattern": r"^[Tt]-?[0-9]{3}\.?[0-9]{3}\.?[0-9]{3}-?[0-9]$", "examples": ["T-034.524.680-1"]}


def _read_match_class(value: str) -> str:
    if value not in MATCH_CLASSES:
        raise ValueError(f"must be one of {', '.join(MATCH_CLASSES)}, got {_quote(value)}")
    return value


ARTIST = Parameter("artist", _read_text, _TEXT, "Artist names as you know them.", is_required=True)
TITLE = Parameter("title", _read_text, _TEXT, "Title as you know it.", is_required=True)
MIN_CLASS = Parameter(
    "min_class",
    _read_match_class,
    {"type": "string", "enum": list(MATCH_CLASSES), "default": LOWEST_CLASS},
    "The lowest class of match to return. `fuzzy` leaves out `possible` answers, whose names are only part of the query or hold it.",
    default=LOWEST_CLASS,
)
LIMIT = _build_limit_parameter(1, 100, 20)
JOBS_LIMIT = _build_limit_parameter(1, 100, 100)
WORK_LIMIT = _build_limit_parameter(1, 200, 50)
CHANGES_LIMIT = _build_limit_parameter(1, 1000, 1000)
CURSOR = Parameter[str | None](
    "cursor", str, {"type": "string", "minLength": 1}, "`next_cursor` of the previous page, with the same query."
)

TRACK_ID = _build_id_parameter("id", "Track id.", "path")
ARTIST_ID = _build_id_parameter("id", "Artist id.", "path")
LABEL_ID = _build_id_parameter("id", "Label id.", "path")
RELEASE_ID = _build_id_parameter("id", "Release id.", "path")
ISRC = Parameter("isrc", _read_isrc, _ISRC_SCHEMA, "Any ISRC of the track, hyphens and lower case allowed.", place="path", is_required=True)
ISWC = Parameter("iswc", _read_iswc, _ISWC_SCHEMA, "With or without separators.", place="path", is_required=True)

OF_ID = _build_id_parameter("id", "Track id.")
OF_ISRC = Parameter("isrc", _read_isrc, _ISRC_SCHEMA, "Any ISRC of the track.")
CONFLICT_ISRC = Parameter[str | None]("isrc", _read_isrc, _ISRC_SCHEMA, "Only conflicts about this code.")
OF_PLATFORM = {key: PlatformParameter(platform) for key, platform in PLATFORMS.items() if platform.has_dumps}
"""By platform key, the parameter that names a track by its id there, for the platforms that this program ships."""


def add_platform_parameters(declared: Sequence[Parameter[Any]], platforms: Mapping[str, Platform]) -> tuple[Parameter[Any], ...]:
    """Return the parameters of a route with those of the snapshot's other platforms, where it takes ids of platforms at all."""
    places = [place for place, parameter in enumerate(declared, 1) if isinstance(parameter, PlatformParameter)]
    added = tuple(key for key, platform in platforms.items() if platform.has_dumps and key not in OF_PLATFORM) if places else ()
    others = (_build_platform_parameter(key, platforms[key].id_shape, platforms[key].id_description) for key in added)
    return (*declared[: places[-1]], *others, *declared[places[-1] :]) if added else tuple(declared)


@lru_cache(64)
def _build_platform_parameter(key: str, shape: str, description: str) -> PlatformParameter:
    # One object per platform: values are found by the identity of their parameter.
    return PlatformParameter(Platform(key=key, position=0, owner="", licence="", url="", id_shape=shape, id_description=description))


OF_URL = Parameter(
    "url",
    _read_url,
    {"type": "string", "format": "uri", "pattern": _TRACK_URL_PATTERN, "maxLength": URL_CHARACTERS},
    "Address of a track on one of the platforms, as its pages and apps give it. Short links are not known.",
)

GENRE_ID = _build_id_parameter("genreId", "Genre id from `/v1/genres`; wins over `genre`. A main includes its subgenres.")
GENRE = Parameter[str | None]("genre", _read_text, _TEXT, "Name of a genre, as you know it.")
YEAR = Parameter[int | None](
    "year",
    _build_number_reader(*YEARS),
    {"type": "integer", "minimum": YEARS[0], "maximum": YEARS[1]},
    "Year of the track's earliest release.",
)
NAME = Parameter("name", _read_text, _TEXT, "Name as you know it.", is_required=True)
BARCODE = Parameter(
    "barcode",
    _read_barcode,
    {"type": "string", "pattern": BARCODE_SHAPE, "examples": ["5099902894225"]},
    "EAN, UPC or GTIN, 8 to 14 digits; leading zeros, blanks and hyphens do not matter.",
    is_required=True,
)
BROWSE_LABEL_ID = _build_id_parameter("labelId", "Label id; wins over `label`.")
BROWSE_LABEL = Parameter[str | None]("label", _read_text, _TEXT, "Name of a label.")
BROWSE_ARTIST_ID = _build_id_parameter("artistId", "Artist id; wins over `artist`.")
BROWSE_ARTIST = Parameter[str | None]("artist", _read_text, _TEXT, "Name of an artist.")
RANDOMIZE = Parameter(
    "randomize", _read_flag, {"type": "boolean", "default": False}, "Random order, new for each first page.", default=False
)

BUILD_SHAPE = r"^[0-9A-Za-z][0-9A-Za-z._-]{0,63}$"


def _read_build_id(value: str) -> str:
    if not re.fullmatch(BUILD_SHAPE, value):
        raise ValueError(f"must be the id of a build, got {_quote(value)}")
    return value


_AS_OF_SHAPE = r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$"


def _read_as_of(value: str) -> str:
    if not re.fullmatch(_AS_OF_SHAPE, value):
        raise ValueError(f"must be the id of a build, a date or a time such as 2026-11-27T12:00:00Z, got {_quote(value)}")
    return value


AS_OF = Parameter[str | None](
    "as_of",
    _read_as_of,
    {"type": "string", "pattern": _AS_OF_SHAPE},
    "Answer from a kept build: its id, or a date or time (UTC) at which it was live.",
)
UNTIL_BUILD = Parameter[str | None](
    "until", _read_build_id, {"type": "string", "pattern": BUILD_SHAPE}, "The last build; by default the live one."
)
SINCE = Parameter[str | None]("since", _read_build_id, {"type": "string", "pattern": BUILD_SHAPE}, "The build of the ids that you hold.")


def _read_opaque_id(value: str) -> str:
    """Accept one of our ids, in any case. Other texts name nothing: they are not found, and the answer shows their visible beginning."""
    return value.lower() if re.fullmatch(UUID_SHAPE, value.lower()) else _quote(value)[1:-1]


WEBHOOK_ID = Parameter("id", _read_opaque_id, {"type": "string", "format": "uuid"}, "Webhook id.", place="path", is_required=True)
DELIVERY_ID = _build_id_parameter("delivery_id", "Delivery id.", "path")


IDENTIFY_MODES = ("track", "timeline")


def build_choice_parameter(
    name: str, choices: Sequence[str], description: str, *, default: str | None = None, is_required: bool = False
) -> Parameter[Any]:
    """Return a query parameter that is one of the choices."""

    def read_choice(value: str) -> str:
        if value not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}; got {_quote(value)}")
        return value

    schema = {"type": "string", "enum": list(choices)} | ({} if default is None else {"default": default})
    return Parameter(name, read_choice, schema, description, default=default, is_required=is_required)


DELIVERY_STATUS = build_choice_parameter("status", DELIVERY_STATUSES, "Deliveries of this status only.")
IDENTIFY_MODE = build_choice_parameter(
    "mode", IDENTIFY_MODES, "`timeline` lists every track of an uploaded file.", default=IDENTIFY_MODES[0]
)
JOB_ID = Parameter("id", _read_opaque_id, {"type": "string", "format": "uuid"}, "Job id.", place="path", is_required=True)
STREAM_ID = Parameter("id", _read_opaque_id, {"type": "string", "format": "uuid"}, "Stream id.", place="path", is_required=True)

_DATES = (date(1970, 1, 2), date(2199, 12, 31))


def _read_date(value: str) -> date:
    try:
        # Python 3.11 also reads 20261121 and 2026-W47-6, hence the pattern.
        day = date.fromisoformat(value) if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value) else None
    except ValueError:
        day = None
    if day is None or not _DATES[0] <= day <= _DATES[1]:
        raise ValueError(f"must be a date, YYYY-MM-DD, from {_DATES[0]} to {_DATES[1]}; got {_quote(value)}")
    return day


def _read_zone(value: str) -> ZoneInfo:
    if value not in _list_zones():
        raise ValueError(f"must be the name of a time zone, such as Europe/Berlin; got {_quote(value)}")
    return ZoneInfo(value)


@cache
def _list_zones() -> set[str]:
    # This walks the folders of the system's time zones.
    return available_timezones()


_DATE_SCHEMA = {"type": "string", "format": "date"}
FROM = Parameter("from", _read_date, _DATE_SCHEMA, "First day of the report.", is_required=True)
UNTIL = Parameter("until", _read_date, _DATE_SCHEMA, "Last day of the report, included.", is_required=True)
TIMEZONE = Parameter(
    "timezone",
    _read_zone,
    {"type": "string", "default": "UTC", "examples": ["Europe/Berlin"]},
    "The time zone of the days; times in the answer are UTC.",
    default=ZoneInfo("UTC"),
)
ACCEPT = Parameter("Accept", str, {"type": "string"}, "Media types that the caller accepts.", default="*/*", place="header")

INCLUDABLE = ("isrcs", "links", "provenance")


def _build_include(names: Sequence[str], description: str) -> Parameter[frozenset[str]]:
    def read(value: str) -> frozenset[str]:
        wanted = frozenset(value.split(","))
        if unknown := sorted(wanted - set(names)):
            raise ValueError(f"must be a comma-separated list of {', '.join(names)}; got {_quote(','.join(unknown))}")
        return wanted

    one = f"({'|'.join(names)})"
    return Parameter("include", read, {"type": "string", "pattern": f"^{one}(,{one})*$"}, description, default=frozenset())


INCLUDE = _build_include(INCLUDABLE, "Additional members, comma-separated: all `isrcs`, the `links`, the `provenance` of each field.")
SEGMENTS = "segments"
HISTORY_INCLUDE = _build_include((SEGMENTS,), "`segments`: also what was on between the airings: talk, unknown music, silence.")

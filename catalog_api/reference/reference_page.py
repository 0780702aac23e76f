"""The reference page at `/v1/docs`: rendered from the OpenAPI description, with requests and answers of the live catalog (contract A1).

It reads without scripts; its own script adds search, copy buttons and the form that sends requests. Nothing comes from another site.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape

from catalog_api.metering import Lookup
from catalog_api.platform_urls import list_templates
from catalog_api.problems import CODES, ApiError
from catalog_api.reference.examples import read_sample_answers
from catalog_api.reference.live_samples import answer_batch, choose_values
from catalog_api.reference.printed_requests import ID_VARIABLES, print_curl, print_javascript, print_python
from catalog_api.reference.sample_requests import JSON, MADE_IDS, SAMPLE_REQUESTS, SMALL_CATALOG, SampleRequest, find_names
from catalog_api.route_declaration import ROUTE, build_path_template

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from litestar.handlers import HTTPRouteHandler

    from catalog_api.service import Service
    from catalog_store.reader import Catalog

_HERE = Path(__file__).parent
_LONGEST_LIST = 3
"""Items of a list in a sample answer."""
_LIMITS = {
    "minimum": "from {}",
    "maximum": "to {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "default": "default {}",
}
Sample = tuple[dict[str, Any], dict[str, Any]]
"""Values of a catalog by name, and sample answers by operation."""


class ReferencePage:
    """The page, rendered once for each build. Any number of threads may ask for it."""

    def __init__(self, document: Mapping[str, Any], handlers: Sequence[HTTPRouteHandler]) -> None:
        """`document` is the description; `handlers` answer sample requests."""
        self._document = document
        self._handlers = {handler.opt[ROUTE].name: handler for handler in handlers if ROUTE in handler.opt}
        self._build: str | None = ""
        self._page = b""
        self._lock = Lock()

    def render(self, service: Service) -> bytes:
        """Return the page about the live catalog; without one it shows the values of the description."""
        with self._lock:
            try:
                with service.live.hold() as catalog:
                    if catalog.snapshot_id != self._build:
                        self._page = self._render(*self._sample(catalog, service), build=catalog.snapshot_id)
                        self._build = catalog.snapshot_id
            except ApiError:
                if self._build is not None:
                    self._page, self._build = self._render({}, {}, build=None), None
            return self._page

    def _sample(self, catalog: Catalog, service: Service) -> Sample:
        values, answers = choose_values(catalog, list_templates(catalog, service.settings.url_templates)), {}
        known = {name: value for name, value in values.items() if value is not None}
        for operation, [request, *_] in SAMPLE_REQUESTS.items():
            if find_names([request.path, request.query, request.body]) <= set(known):
                answers[operation] = self._ask(catalog, service, operation, request.fill(known))
        return known, {operation: answer for operation, answer in answers.items() if answer is not None}

    def _ask(self, catalog: Catalog, service: Service, operation: str, request: SampleRequest) -> Any:  # noqa: ANN401 - JSON
        """Return the live answer; None for operations that need an account."""
        if request.has_body:
            return answer_batch(catalog, service.settings.url_templates, operation, request)
        handler = self._handlers[operation]
        route = handler.opt[ROUTE]
        if not route.is_about_catalog:
            return None
        # A caller who may do everything, and to whom nothing is charged.
        plan = SimpleNamespace(has_feature=lambda _name: True)
        caller = SimpleNamespace(scopes={route.key_scope}, plan=plan, has_card=True, is_test=False)
        app = SimpleNamespace(state=SimpleNamespace(service=service))
        path, _, query = request.build_target(build_path_template(route.path)).partition("?")
        scope: Any = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": []}
        scope |= {
            "path_params": {name: str(value) for name, value in request.path.items()},
            "state": {"caller": caller},
            "litestar_app": app,
        }
        question = handler.fn(scope)
        answer = question.answer_uncharged(service, scope) if isinstance(question, Lookup) else None
        return None if answer is None or answer.status != 200 else json.loads(answer.body)  # noqa: PLR2004

    def _render(self, values: Mapping[str, Any], answers: Mapping[str, Any], *, build: str | None) -> bytes:
        pages = Environment(loader=FileSystemLoader(_HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True)
        pages.filters |= {"marked": _mark_code, "kind": _describe_type, "example": _write_example}
        recorded = read_sample_answers()
        groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for path, item in self._document["paths"].items():
            for method, operation in item.items():
                name = operation["operationId"]
                shown = _describe_operation(method.upper(), path, operation, {**SMALL_CATALOG, **values})
                shown["is_live"] = name in answers
                shown["answer"] = _write_answer(answers.get(name, recorded[name][0]))
                groups[operation["tags"][0]].append(shown)
        tags = {tag["name"]: tag["description"] for tag in self._document["tags"]}
        document, receiver = self._document, _HERE.joinpath("sample_receiver.py").read_text(encoding="utf-8")
        facts = {"groups": groups, "tags": tags, "build": build, "receiver": receiver, "plans": _read_plans(document)}
        facts["start"] = {name: _print_first(document, name, {**SMALL_CATALOG, **values}) for name in ("search", "create_job", "identify")}
        page = pages.get_template("page.html")
        return page.render(document=document, schemas=document["components"]["schemas"], **facts).encode()


def _read_plans(document: Mapping[str, Any]) -> list[list[str]]:
    """Return the rows of the table of plans, its head first."""
    table = document["info"]["description"].partition("\n\n")[2]
    return [row.strip("| ").split(" | ") for row in table.splitlines() if not row.startswith("|---")]


def _print_first(document: Mapping[str, Any], operation: str, values: Mapping[str, Any]) -> str:
    for path, item in document["paths"].items():
        for method, one in item.items():
            if one["operationId"] == operation:
                return print_curl(method.upper(), path, SAMPLE_REQUESTS[operation][0].fill(_keep_ids(values)))
    raise AssertionError(f"there is no operation {operation}")


def _keep_ids(values: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out ids that only the reader's own requests make."""
    return {name: value for name, value in values.items() if name not in ID_VARIABLES}


def _describe_operation(method: str, path: str, operation: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    name = operation["operationId"]
    template = SAMPLE_REQUESTS[name][0]
    request = template.fill(_keep_ids(values))
    content = operation["responses"]["200"]["content"]
    is_file = JSON not in content
    bodies = operation.get("requestBody", {}).get("content", {})
    return {
        "name": name,
        "method": method,
        "path": path,
        "operation": operation,
        "requests": {
            "curl": print_curl(method, path, request),
            "Python": print_python(method, path, request, is_file=is_file),
            "JavaScript": print_javascript(method, path, request, is_file=is_file),
        },
        "sent": request,
        "sent_body": json.dumps(request.body, ensure_ascii=False, indent=1) if request.body is not None else request.text or "",
        "needs": sorted(ID_VARIABLES[one] for one in find_names([template.path]) if one in ID_VARIABLES),
        "makes": MADE_IDS[name][0].upper() if name in MADE_IDS else None,
        "body_types": list(bodies),
        "bodies": bodies[JSON]["schema"].get("oneOf", [bodies[JSON]["schema"]]) if JSON in bodies else [],
        "answer_type": content[JSON]["schema"]["$ref"].rpartition("/")[2] if JSON in content else None,
        "headers": list(operation["responses"]["200"].get("headers", {})),
        "errors": [
            (status, code, CODES[code].advice)
            for status, response in operation["responses"].items()
            for code in response.get("x-codes", ())
        ],
    }


def _write_answer(answer: Any) -> str:  # noqa: ANN401 - JSON, or the text of a file
    return answer if isinstance(answer, str) else json.dumps(_shorten(answer), ensure_ascii=False, indent=1)


def _shorten(value: Any) -> Any:  # noqa: ANN401 - JSON
    """Cut lists, so that a sample fits on a screen."""
    if isinstance(value, dict):
        return {name: _shorten(one) for name, one in value.items()}
    return [_shorten(one) for one in value[:_LONGEST_LIST]] if isinstance(value, list) else value


def read_reference_style() -> bytes:
    """Read the style sheet of the page."""
    return (_HERE / "style.css").read_bytes()


def read_reference_script() -> bytes:
    """Read the script of the page."""
    return (_HERE / "page.js").read_bytes()


def _mark_code(text: str) -> Markup:
    """Mark the parts of a text between backticks as code."""
    parts = text.split("`")
    return Markup("").join(Markup("<code>{}</code>").format(part) if number % 2 else escape(part) for number, part in enumerate(parts))


def _write_example(schema: Mapping[str, Any]) -> Markup:
    """Write the example of a field, or nothing for objects, whose own fields have some."""
    examples = schema.get("examples", [])
    return Markup("<code>{}</code>").format(json.dumps(examples[0], ensure_ascii=False)) if examples else Markup("")


def _describe_type(schema: Mapping[str, Any]) -> Markup:
    """Describe a schema in a few words, with its limits and with links to the schemas that it names."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return Markup('<a href="#schema-{0}">{0}</a>').format(name)
    alternatives = [*schema.get("anyOf", ()), *schema.get("oneOf", ())]
    if alternatives:
        return Markup(" or ").join(_describe_type(one) for one in alternatives)
    if "enum" in schema:
        return Markup(" | ").join(Markup("<code>{}</code>").format(json.dumps(one)) for one in schema["enum"])
    limits = [text.format(json.dumps(schema[key])) for key, text in _LIMITS.items() if key in schema]
    if schema.get("type") == "array":
        return Markup(", ").join([Markup("array of {}").format(_describe_type(schema.get("items", {}))), *map(escape, limits)])
    kinds = schema.get("type", "any")
    kind = escape(schema.get("format") or (kinds if isinstance(kinds, str) else " or ".join(kinds)))
    pattern = [Markup("pattern <code>{}</code>").format(schema["pattern"])] if "pattern" in schema else []
    return Markup(", ").join([kind, *map(escape, limits), *pattern])

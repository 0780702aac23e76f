"""The declaration of a route: its path, its parameters, its answer. It reads the requests and writes the description.

    @get_route("/v1/tracks/{id:str}", Track, tag="Tracks", summary="A track by id", parameters=(TRACK_ID, INCLUDE))
    def track_by_id(values: ParameterValues) -> Question: ...

A handler takes checked values and returns a question, which metering.py answers. So a bad request is refused before anything is charged,
and nothing is answered before it is counted (contract A8). Out of scope: any single route.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec
from litestar import Request, delete, get, patch, post, put
from litestar.handlers import HTTPRouteHandler
from litestar.types import Receive, Scope

from catalog_api.address_check import add_address_problems
from catalog_api.changelog import CHANGES, build_deprecation_headers
from catalog_api.credit_prices import FREE, OF_LOOKUP, Price
from catalog_api.entitlements import check_card, check_plan, find_scope, refuse_scope, refuse_test_key
from catalog_api.idempotency import find_idempotency_problem
from catalog_api.metering import Lookup, Question
from catalog_api.parameters import (
    AS_OF,
    Parameter,
    ParameterValues,
    PlatformParameter,
    add_platform_parameters,
    raise_problems,
    read_parameters,
)
from catalog_api.problems import ApiError, ParameterProblem
from catalog_api.request_bodies import Members, read_json
from catalog_api.service import Service
from catalog_store.platforms import PLATFORMS

ROUTE = "route"
"""Handler option: the route's declaration."""
_VERBS: Mapping[str, Callable[..., Callable[..., HTTPRouteHandler]]] = {
    "GET": get,
    "POST": post,
    "PUT": put,
    "PATCH": patch,
    "DELETE": delete,
}


@dataclass(frozen=True, kw_only=True)
class Route:
    """The members of a declaration. `failures` are the codes of this route beyond those that other members imply.

    - `feature`: what the account's plan must include; `needs_card`: the account must have a payment card.
    - `price`: what the description states, one credit an answer unless named; `is_free`: costs no credits.
    - `is_live_only`: test keys may not use it. `is_live_build`: it answers from the live build alone, and takes no `as_of`.
    - `is_about_catalog`: answers have entity tags; `names_build`: answers without a tag name their build, too.
    - `body`: the JSON Schema of a request body; `other_bodies`: media types that may come instead. Without `needs_body` it may be absent,
      which reads as `{}`. `https_only` restricts the addresses in it.
    - `other_types`: media types of answers besides JSON; `is_file`: answers have one of them and are never JSON.
    - `checks` find problems of several parameters together. In place of a wrong value they see its default.
    - `late_checks` find what the work would refuse. They run only when something else is wrong, so that one answer names all (contract A5).
    """

    method: str
    path: str
    answers: type[msgspec.Struct]
    tag: str
    summary: str
    parameters: tuple[Parameter[Any], ...] = ()
    exactly_one: tuple[Parameter[Any], ...] = ()
    failures: tuple[str, ...] = ()
    feature: str | None = None
    needs_card: bool = False
    price: Price | None = None
    is_free: bool = False
    is_live_only: bool = False
    is_live_build: bool = False
    is_about_catalog: bool = True
    names_build: bool = False
    takes_idempotency_key: bool = False
    needs_body: bool = True
    body: Mapping[str, Any] | None = None
    other_bodies: tuple[str, ...] = ()
    other_types: tuple[str, ...] = ()
    is_file: bool = False
    checks: tuple[Callable[[ParameterValues], list[ParameterProblem]], ...] = ()
    late_checks: tuple[Callable[[ParameterValues, Service], list[ParameterProblem]], ...] = ()
    https_only: bool = False
    name: str = ""
    description: str = ""
    deprecation: Mapping[str, str] = field(default_factory=dict)
    """Headers that its answers carry when the changelog calls it deprecated (contract A17)."""
    travels: bool = False
    """Whether it takes `as_of`."""
    key_scope: str = ""
    """The scope that a key needs."""

    @property
    def stated_price(self) -> Price:
        """The price that the description states."""
        return self.price or (FREE if self.is_free else OF_LOOKUP)

    @cached_property  # every request asks
    def names_platforms(self) -> bool:
        """Whether the route takes the ids of platforms."""
        return any(isinstance(parameter, PlatformParameter) for parameter in self.parameters)

    def add_route_headers(self, question: Question) -> Question:
        """Return the question with the headers of the route."""
        question.route_headers = self.deprecation
        return question

    def choose_build(self, question: Question, values: ParameterValues) -> None:
        """Let a lookup answer from the build of `as_of`."""
        if self.travels and isinstance(question, Lookup):
            question.as_of = values[AS_OF]

    def read(self, scope: Scope) -> ParameterValues:
        """Return the parameters; ApiError `plan_required`, or one that names all problems."""
        values, problems = self.gather(scope)
        raise_problems(problems)
        return values

    def _list_parameters(self, scope: Scope) -> tuple[Sequence[Parameter[Any]], Sequence[Parameter[Any]]]:
        """Return the parameters, and those of which a request has exactly one."""
        if self.names_platforms:
            platforms = scope["litestar_app"].state.service.live.platforms
            # The live snapshot may hold platforms that this program does not ship.
            if not platforms.keys() <= PLATFORMS.keys():
                return add_platform_parameters(self.parameters, platforms), add_platform_parameters(self.exactly_one, platforms)
        return self.parameters, self.exactly_one

    def gather(self, scope: Scope) -> tuple[ParameterValues, list[ParameterProblem]]:
        """Return the parameters and their problems, before the body is read; ApiError `plan_required`."""
        state = scope["state"]
        state["route"] = self.path
        caller = state["caller"]
        if self.key_scope not in caller.scopes:
            raise refuse_test_key() if caller.is_test else refuse_scope(self.key_scope)
        if self.is_live_only and caller.is_test:
            raise refuse_test_key()
        # Plan and card come before the parameters (contract A8): what is wrong with them does not concern a caller who may not
        # ask.
        if self.feature is not None:
            check_plan(scope, self.feature)
        if self.needs_card:
            check_card(scope)
        # Most requests have no query, and their Prefer header need not be read.
        is_strict = scope["query_string"] != b"" and has_strict_preference(scope)
        declared, group = self._list_parameters(scope)
        values, problems = read_parameters(declared, group, scope, is_strict=is_strict)
        for check in self.checks:
            problems += check(values)
        if self.takes_idempotency_key and (problem := find_idempotency_problem(scope)):
            problems.append(problem)
        # Late checks cost as much as the work, which finds the same problems in a request that is right otherwise.
        if problems and self.late_checks:
            service: Service = scope["litestar_app"].state.service
            for late_check in self.late_checks:
                problems += late_check(values, service)
        return values, problems


def has_strict_preference(scope: Scope) -> bool:
    """Return whether unknown query parameters and body members are to be refused (RFC 7240, contract A7)."""
    preferences = [value for name, value in scope["headers"] if name == b"prefer"]
    return any(_is_strict(one) for value in preferences for one in value.split(b",")) if preferences else False


def _is_strict(preference: bytes) -> bool:
    name, _, value = preference.partition(b";")[0].partition(b"=")
    return name.strip().lower() == b"handling" and value.strip().strip(b'"').lower() == b"strict"


def get_route(
    path: str,
    answers: type[msgspec.Struct],
    **declared: Any,  # noqa: ANN401 - the members of Route
) -> Callable[[Callable[[ParameterValues], Question]], HTTPRouteHandler]:
    """Declare a GET route; `declared` are the other members of Route."""
    return _declare_without_body("GET", path, answers, declared)


def delete_route(
    path: str,
    answers: type[msgspec.Struct],
    **declared: Any,  # noqa: ANN401 - the members of Route
) -> Callable[[Callable[[ParameterValues], Question]], HTTPRouteHandler]:
    """Declare a DELETE route; it answers 200 with what was deleted."""
    return _declare_without_body("DELETE", path, answers, declared)


def post_route_without_body(
    path: str,
    answers: type[msgspec.Struct],
    **declared: Any,  # noqa: ANN401 - the members of Route
) -> Callable[[Callable[[ParameterValues], Question]], HTTPRouteHandler]:
    """Declare a POST route without a body: its path says what it does."""
    return _declare_without_body("POST", path, answers, declared)


def _declare_without_body(
    method: str, path: str, answers: type[msgspec.Struct], declared: Mapping[str, Any]
) -> Callable[[Callable[[ParameterValues], Question]], HTTPRouteHandler]:
    def declare(handler: Callable[[ParameterValues], Question]) -> HTTPRouteHandler:
        route = _build_route(method, path, answers, handler, declared)

        def answer(scope: Scope) -> Question:
            values = route.read(scope)
            question = route.add_route_headers(handler(values))
            # Without a query there is no `as_of`.
            if scope["query_string"]:
                route.choose_build(question, values)
            return question

        # No thread: the handler builds a question in microseconds, and metering.py decides where its work runs.
        return _VERBS[method](path, opt={ROUTE: route}, name=route.name, status_code=200, sync_to_thread=False)(answer)

    return declare


def post_route(
    path: str,
    answers: type[msgspec.Struct],
    **declared: Any,  # noqa: ANN401 - the members of Route
) -> Callable[[Callable[[ParameterValues, Members], Question]], HTTPRouteHandler]:
    """Declare a POST route; the handler also takes the members of the JSON body, and checks them."""
    return _declare_with_body("POST", path, answers, declared)


def put_route(
    path: str,
    answers: type[msgspec.Struct],
    **declared: Any,  # noqa: ANN401 - the members of Route
) -> Callable[[Callable[[ParameterValues, Members], Question]], HTTPRouteHandler]:
    """Declare a PUT route; its JSON body holds the new state."""
    return _declare_with_body("PUT", path, answers, declared)


def patch_route(
    path: str,
    answers: type[msgspec.Struct],
    **declared: Any,  # noqa: ANN401 - the members of Route
) -> Callable[[Callable[[ParameterValues, Members], Question]], HTTPRouteHandler]:
    """Declare a PATCH route; its JSON body holds the members that change."""
    return _declare_with_body("PATCH", path, answers, declared)


def _declare_with_body(
    method: str, path: str, answers: type[msgspec.Struct], declared: Mapping[str, Any]
) -> Callable[[Callable[[ParameterValues, Members], Question]], HTTPRouteHandler]:
    def declare(handler: Callable[[ParameterValues, Members], Question]) -> HTTPRouteHandler:
        route = _build_route(method, path, answers, handler, declared)

        async def answer(request: Request[Any, Any, Any]) -> Question:
            scope = request.scope
            values, problems = route.gather(scope)
            document = await read_json(scope, request.receive, is_needed=route.needs_body)
            members = Members(document, problems, is_strict=has_strict_preference(scope))
            try:
                return route.add_route_headers(handler(values, members))
            except ApiError as error:
                if error.code != "invalid_parameter" or not members.addresses:
                    raise
            # Name servers are asked only for a body that is refused anyway, so that one answer names all problems (contract
            # A5). The work checks the addresses of a good body.
            service: Service = scope["litestar_app"].state.service
            await add_address_problems(service, scope["state"]["caller"], members, https_only=route.https_only)
            members.check()
            # `check` raises: the handler raised for the same members.
            raise AssertionError("the handler refused members that have no problem")

        return _VERBS[method](path, opt={ROUTE: route}, name=route.name, status_code=200)(answer)

    return declare


def post_route_with_raw_body(
    path: str,
    answers: type[msgspec.Struct],
    **declared: Any,  # noqa: ANN401 - the members of Route
) -> Callable[[Callable[[ParameterValues, list[ParameterProblem], Scope, Receive], Awaitable[Question]]], HTTPRouteHandler]:
    """Declare a POST route whose handler reads the body itself and reports the problems found so far. The plan is checked before."""

    def declare(handler: Callable[[ParameterValues, list[ParameterProblem], Scope, Receive], Awaitable[Question]]) -> HTTPRouteHandler:
        route = _build_route("POST", path, answers, handler, declared)

        async def answer(request: Request[Any, Any, Any]) -> Question:
            values, problems = route.gather(request.scope)
            return route.add_route_headers(await handler(values, problems, request.scope, request.receive))

        return post(path, opt={ROUTE: route}, name=route.name, status_code=200)(answer)

    return declare


def _build_route(
    method: str, path: str, answers: type[msgspec.Struct], handler: Callable[..., object], declared: Mapping[str, Any]
) -> Route:
    name = handler.__name__
    deprecation = build_deprecation_headers(CHANGES, build_path_template(path))
    travels = method == "GET" and bool(declared.get("is_about_catalog", True)) and not declared.get("is_live_build", False)
    if travels:
        declared = {**declared, "parameters": (*declared.get("parameters", ()), AS_OF)}
        declared["failures"] = (*declared.get("failures", ()), "build_not_kept")
    return Route(
        method=method,
        path=path,
        answers=answers,
        name=name,
        description=handler.__doc__ or "",
        deprecation=deprecation,
        key_scope=find_scope(path),
        travels=travels,
        **declared,
    )


def build_path_template(path: str) -> str:
    """Return the path as the description writes it: `/v1/tracks/{id}` for `/v1/tracks/{id:str}`."""
    return path.replace(":str}", "}")


def list_declared_routes(handlers: Sequence[HTTPRouteHandler]) -> list[Route]:
    """Return the declarations among the handlers, in their order."""
    return [handler.opt[ROUTE] for handler in handlers if ROUTE in handler.opt]

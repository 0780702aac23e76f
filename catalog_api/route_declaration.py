"""How a route is declared: its path, what it can be asked, what it answers. The declaration reads requests and writes the description.

    @reads("/v1/tracks/{id:str}", Track, tag="Tracks", summary="A track by id", parameters=(TRACK_ID, INCLUDE), failures=("not_found",))
    def track_by_id(asked: ParameterValues) -> Question: ...

A handler is handed checked values and returns the question they make; metering.py asks and answers it. So a bad request is refused before
anything is counted, and nothing is asked before it is (contract A8). What must not live here: any one route.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from litestar import Request, delete, get, patch, post
from litestar.handlers import HTTPRouteHandler
from litestar.types import Receive, Scope

from catalog_api.address_check import add_address_problems
from catalog_api.changelog import CHANGES, deprecation_headers
from catalog_api.entitlements import check_card, check_plan
from catalog_api.idempotency import idempotency_problem
from catalog_api.metering import Question
from catalog_api.parameters import Parameter, ParameterValues, check, read
from catalog_api.problems import ApiError, ParameterProblem
from catalog_api.request_bodies import Members, read_json
from catalog_api.service import Service

ROUTE = "route"
"""Handler option: the route's declaration."""
_VERBS: Mapping[str, Callable[..., Callable[..., HTTPRouteHandler]]] = {"GET": get, "POST": post, "PATCH": patch, "DELETE": delete}


@dataclass(frozen=True, kw_only=True)
class Route:
    """What is declared of a route. `failures` are codes of its own, beyond those that follow from the other members.

    `feature` names what the account's plan must allow, `needs_card` that it must have a payment card; `is_free` routes cost no credits;
    answers `is_about_catalog` have entity tags; `body` is the JSON Schema of a request body, `other_bodies` are media types that may come
    instead, and without `needs_body` none at all, which reads as `{}`; `other_types` are media types that it answers besides JSON.
    `checks` find what is wrong with parameters together; they meet the default in place of a value that is wrong by itself. `late_checks`
    find what the work would refuse: they are asked when something else is wrong already, so that one answer names all (contract A5).
    `https_only` is asked of the addresses in a body.
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
    is_free: bool = False
    is_about_catalog: bool = True
    takes_idempotency_key: bool = False
    needs_body: bool = True
    body: Mapping[str, Any] | None = None
    other_bodies: tuple[str, ...] = ()
    other_types: tuple[str, ...] = ()
    checks: tuple[Callable[[ParameterValues], list[ParameterProblem]], ...] = ()
    late_checks: tuple[Callable[[ParameterValues, Service], list[ParameterProblem]], ...] = ()
    https_only: bool = False
    name: str = ""
    description: str = ""
    deprecation: Mapping[str, str] = field(default_factory=dict)
    """Headers that its answers carry when the changelog calls it deprecated (contract A17)."""

    def with_route_headers(self, question: Question) -> Question:
        """The question, whose answer tells the deprecation."""
        question.told = self.deprecation
        return question

    def read(self, scope: Scope) -> ParameterValues:
        """The parameters of a request whose plan allows it; ApiError `plan_required`, or naming everything that is wrong with them."""
        asked, problems = self.gather(scope)
        check(problems)
        return asked

    def gather(self, scope: Scope) -> tuple[ParameterValues, list[ParameterProblem]]:
        """The parameters and what is wrong with them, before a body is looked at; ApiError `plan_required`."""
        scope["state"]["route"] = self.path
        if self.feature is not None:
            check_plan(scope, self.feature)
        if self.needs_card:
            check_card(scope)
        is_strict = scope["query_string"] != b"" and prefers_strict(scope)
        asked, problems = read(self.parameters, self.exactly_one, scope, is_strict=is_strict)
        for found in self.checks:
            problems += found(asked)
        if self.takes_idempotency_key and (wrong := idempotency_problem(scope)):
            problems.append(wrong)
        if problems and self.late_checks:
            service: Service = scope["litestar_app"].state.service
            for late in self.late_checks:
                problems += late(asked, service)
        return asked, problems


def prefers_strict(scope: Scope) -> bool:
    """Whether the caller wants unknown query parameters and members of the body refused (RFC 7240, contract A7)."""
    wishes = [value for name, value in scope["headers"] if name == b"prefer"]
    return any(_is_strict(wish) for value in wishes for wish in value.split(b",")) if wishes else False


def _is_strict(wish: bytes) -> bool:
    name, _, value = wish.partition(b";")[0].partition(b"=")
    return name.strip().lower() == b"handling" and value.strip().strip(b'"').lower() == b"strict"


def reads(
    path: str,
    answers: type[msgspec.Struct],
    **declared: Any,  # noqa: ANN401 - the members of Route
) -> Callable[[Callable[[ParameterValues], Question]], HTTPRouteHandler]:
    """Declare a GET route; `declared` are the other members of Route."""
    return _without_body("GET", path, answers, declared)


def deletes(
    path: str,
    answers: type[msgspec.Struct],
    **declared: Any,  # noqa: ANN401 - the members of Route
) -> Callable[[Callable[[ParameterValues], Question]], HTTPRouteHandler]:
    """Declare a DELETE route; it answers 200 with what was deleted."""
    return _without_body("DELETE", path, answers, declared)


def acts(
    path: str,
    answers: type[msgspec.Struct],
    **declared: Any,  # noqa: ANN401 - the members of Route
) -> Callable[[Callable[[ParameterValues], Question]], HTTPRouteHandler]:
    """Declare a POST route that needs no body: what it does is said by its path."""
    return _without_body("POST", path, answers, declared)


def _without_body(
    method: str, path: str, answers: type[msgspec.Struct], declared: Mapping[str, Any]
) -> Callable[[Callable[[ParameterValues], Question]], HTTPRouteHandler]:
    def declare(handler: Callable[[ParameterValues], Question]) -> HTTPRouteHandler:
        route = _route(method, path, answers, handler, declared)

        def answer(scope: Scope) -> Question:
            return route.with_route_headers(handler(route.read(scope)))

        return _VERBS[method](path, opt={ROUTE: route}, name=route.name, status_code=200, sync_to_thread=False)(answer)

    return declare


def writes(
    path: str,
    answers: type[msgspec.Struct],
    **declared: Any,  # noqa: ANN401 - the members of Route
) -> Callable[[Callable[[ParameterValues, Members], Question]], HTTPRouteHandler]:
    """Declare a POST route whose handler is handed the members of the JSON body too, and checks them."""
    return _with_body("POST", path, answers, declared)


def alters(
    path: str,
    answers: type[msgspec.Struct],
    **declared: Any,  # noqa: ANN401 - the members of Route
) -> Callable[[Callable[[ParameterValues, Members], Question]], HTTPRouteHandler]:
    """Declare a PATCH route; its JSON body holds the members that change."""
    return _with_body("PATCH", path, answers, declared)


def _with_body(
    method: str, path: str, answers: type[msgspec.Struct], declared: Mapping[str, Any]
) -> Callable[[Callable[[ParameterValues, Members], Question]], HTTPRouteHandler]:
    def declare(handler: Callable[[ParameterValues, Members], Question]) -> HTTPRouteHandler:
        route = _route(method, path, answers, handler, declared)

        async def answer(request: Request[Any, Any, Any]) -> Question:
            scope = request.scope
            asked, problems = route.gather(scope)
            document = await read_json(scope, request.receive, is_needed=route.needs_body)
            members = Members(document, problems, is_strict=prefers_strict(scope))
            try:
                return route.with_route_headers(handler(asked, members))
            except ApiError as error:
                if error.code != "invalid_parameter" or not members.addresses:
                    raise
            service: Service = scope["litestar_app"].state.service
            await add_address_problems(service, scope["state"]["caller"], members, https_only=route.https_only)
            members.check()
            raise AssertionError("the handler refused members that have no problem")

        return _VERBS[method](path, opt={ROUTE: route}, name=route.name, status_code=200)(answer)

    return declare


def receives(
    path: str,
    answers: type[msgspec.Struct],
    **declared: Any,  # noqa: ANN401 - the members of Route
) -> Callable[[Callable[[list[ParameterProblem], Scope, Receive], Awaitable[Question]]], HTTPRouteHandler]:
    """Declare a POST route whose handler reads the body itself, once the plan is known to allow it, and tells the problems found so far."""

    def declare(handler: Callable[[list[ParameterProblem], Scope, Receive], Awaitable[Question]]) -> HTTPRouteHandler:
        route = _route("POST", path, answers, handler, declared)

        async def answer(request: Request[Any, Any, Any]) -> Question:
            _, problems = route.gather(request.scope)
            return route.with_route_headers(await handler(problems, request.scope, request.receive))

        return post(path, opt={ROUTE: route}, name=route.name, status_code=200)(answer)

    return declare


def _route(method: str, path: str, answers: type[msgspec.Struct], handler: Callable[..., object], declared: Mapping[str, Any]) -> Route:
    name = handler.__name__
    deprecation = deprecation_headers(CHANGES, template(path))
    return Route(
        method=method, path=path, answers=answers, name=name, description=handler.__doc__ or "", deprecation=deprecation, **declared
    )


def template(path: str) -> str:
    """The path as the description writes it: `/v1/tracks/{id:str}` is `/v1/tracks/{id}`."""
    return path.replace(":str}", "}")


def declared(handlers: Sequence[HTTPRouteHandler]) -> list[Route]:
    """The declarations among the handlers, in their order."""
    return [handler.opt[ROUTE] for handler in handlers if ROUTE in handler.opt]

"""Alerts to an operator: one message by webhook, by mail, or by both.

Out of scope: which event deserves an alert (defs/alert_sensors.py).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import httpx

from outbound_http.mails import MAIL_ERRORS, send_mail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TIMEOUT_SECONDS = 20.0
"""Longest wait for a receiver. A sensor's tick has 60 s by default and may have to ask two of them."""

Kind = Literal["run_failed", "build_needs_a_look", "source_is_stale"]


class AlertError(Exception):
    """An alert that a receiver did not take. The message names the receiver and the cause, and never a password."""

    def __init__(self, message: str, *, is_received: bool) -> None:
        """`is_received`: another receiver has taken the alert."""
        super().__init__(message)
        self.is_received = is_received


@dataclass(frozen=True)
class Alert:
    """Something that a person has to look at. `job` and `run_id` are empty if it concerns no run."""

    kind: Kind
    job: str
    run_id: str
    problems: tuple[str, ...]
    """One line each, the worst first."""

    @property
    def subject(self) -> str:
        """The message in one line."""
        plural = "s"[: len(self.problems) != 1]
        said = {
            "run_failed": f"{self.job} failed",
            "build_needs_a_look": f"{self.job} needs a look: {len(self.problems)} warning{plural}",
            "source_is_stale": f"{len(self.problems)} source{plural} not staged in time",
        }
        return f"music catalog: {said[self.kind]}"

    @property
    def text(self) -> str:
        """The whole message. Chat services show the member of this name of a posted alert."""
        return "\n".join([self.subject, *([f"run {self.run_id}"] if self.run_id else []), *(f"- {problem}" for problem in self.problems)])


@dataclass(frozen=True)
class Receivers:
    """The receivers of alerts. `mail_server` is a URL with scheme `smtp` or `smtps`."""

    webhook: str | None = None
    mail: Sequence[str] = ()
    mail_server: str | None = None
    mail_sender: str = ""

    def send(self, alert: Alert) -> list[str]:
        """Send the alert to every receiver and return their names. AlertError when one did not take it; the others have it then."""
        ways: list[tuple[str, Callable[[Alert], None]]] = []
        if self.webhook:
            ways.append((_name_host(self.webhook), self._post))
        if self.mail and self.mail_server:
            ways.append((", ".join(self.mail), self._mail))
        failures = []
        for name, way in ways:
            try:
                way(alert)
            except (httpx.HTTPError, httpx.InvalidURL, *MAIL_ERRORS) as error:
                failures.append(f"{name}: {str(error) or type(error).__name__}")
        if failures:
            raise AlertError("; ".join(failures), is_received=len(failures) < len(ways))
        return [name for name, _ in ways]

    def _post(self, alert: Alert) -> None:
        answer = httpx.post(str(self.webhook), json={**asdict(alert), "text": alert.text}, timeout=TIMEOUT_SECONDS)
        if not answer.is_success:
            raise ValueError(f"answers {answer.status_code}")

    def _mail(self, alert: Alert) -> None:
        send_mail(str(self.mail_server), self.mail_sender, self.mail, alert.subject, alert.text, seconds=TIMEOUT_SECONDS)


def _name_host(address: str) -> str:
    """Return the host of an address. The rest of a webhook's address is often its secret."""
    return urlsplit(address).hostname or "webhook"

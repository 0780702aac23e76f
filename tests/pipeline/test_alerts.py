"""Alerts as receivers get them: a webhook and a mail server on loopback."""

from __future__ import annotations

import json

import pytest

from pipeline.alerts import Alert, AlertError, Receivers
from tests.mail_server import mail_server
from tests.ports import free_port
from tests.webhook_delivery.receiver import answers, receiving

ALERT = Alert("run_failed", "nightly_build", "7f1c", ("edges: disk full\nat /srv", "tracks: ünknown"))


def test_webhook_gets_the_alert_as_json_with_a_text_for_chat_services() -> None:
    with receiving() as receiver:
        assert Receivers(webhook=receiver.url).send(ALERT) == ["127.0.0.1"]
        [received] = receiver.received
    body = json.loads(received.body)
    assert body["text"].splitlines()[:2] == ["music catalog: nightly_build failed", "run 7f1c"]
    assert body["problems"] == ["edges: disk full\nat /srv", "tracks: ünknown"]
    assert (body["kind"], body["job"], body["run_id"]) == ("run_failed", "nightly_build", "7f1c")


def test_mail_names_job_run_and_problems() -> None:
    with mail_server() as server:
        receivers = Receivers(mail=("a@example.org", "b@example.org"), mail_server=server.url, mail_sender="catalog@example.org")
        receivers.send(Alert("build_needs_a_look", "nightly_build", "7f1c", ("landing/works: 40 days old", "tracks: ünknown")))
        [message] = server.messages
    assert message["Subject"] == "music catalog: nightly_build needs a look: 2 warnings"
    assert (message["From"], message["To"]) == ("catalog@example.org", "a@example.org, b@example.org")
    assert message.get_content().splitlines()[1:] == ["run 7f1c", "- landing/works: 40 days old", "- tracks: ünknown"]


def test_receiver_that_refuses_is_named_and_the_other_gets_the_alert() -> None:
    with receiving(answers(500)) as receiver, mail_server() as server:
        with pytest.raises(AlertError, match=r"^127\.0\.0\.1: answers 500$"):
            Receivers(receiver.url + "?token=secret", ("a@example.org",), server.url, "c@example.org").send(ALERT)
        assert len(server.messages) == 1
        with pytest.raises(AlertError, match=r"a@refused\.example"):
            Receivers(mail=("a@refused.example",), mail_server=server.url, mail_sender="c@example.org").send(ALERT)


def test_receiver_that_is_down_is_named_without_its_secrets() -> None:
    port = free_port()
    receivers = Receivers(f"http://127.0.0.1:{port}/secret", ("a@example.org",), f"smtp://user:secret@127.0.0.1:{port}", "c@example.org")
    with pytest.raises(AlertError) as failed:
        receivers.send(ALERT)
    assert "127.0.0.1: " in str(failed.value)
    assert "a@example.org: " in str(failed.value)
    assert "secret" not in str(failed.value)


def test_alert_without_receivers_goes_nowhere() -> None:
    assert Receivers().send(ALERT) == []

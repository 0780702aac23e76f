"""Tests of the server's settings: their sources and precedence, refused values, and the page and printed file that list them."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from catalog_api.settings import ApiSettings, SettingsError, format_settings_file, load_settings, render_settings_page, to_environment

if TYPE_CHECKING:
    from pathlib import Path


def test_options_beat_the_environment_which_beats_the_file_which_beats_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "api.toml"
    file.write_text('port = 1\nworkers = 2\nhost = "file"\n[url_templates]\nstore_a = "https://example.org/{id}"\n', encoding="utf-8")
    environment = {"CATALOG_API_SETTINGS": str(file), "CATALOG_API_PORT": "11", "CATALOG_API_WORKERS": "12", "HOME": "/"}
    settings = load_settings(environment, {"port": 21, "host": None})
    assert (settings.port, settings.workers, settings.host, settings.idle_seconds) == (21, 12, "file", ApiSettings().idle_seconds)
    # The snapshot gives the templates of the other platforms.
    assert settings.url_templates == {"store_a": "https://example.org/{id}"}


def test_workers_get_the_settings_by_the_environment_unchanged(tmp_path: Path) -> None:
    settings = load_settings(
        {},
        {
            "catalog": str(tmp_path / "c d"),
            "log_requests": False,
            "head_seconds": 0.5,
            "log_level": "error",
            "url_templates": '{"store_a": "https://x/{id}"}',
        },
    )
    assert load_settings(to_environment(settings)) == settings


def test_printed_settings_are_a_file_with_the_same_values(tmp_path: Path) -> None:
    settings = load_settings({}, {"catalog": 'a "quoted" folder', "verify_contents": False})
    file = tmp_path / "api.toml"
    file.write_text(format_settings_file(settings), encoding="utf-8")
    assert load_settings({"CATALOG_API_SETTINGS": str(file)}) == settings


def test_settings_page_names_every_setting_with_its_variable() -> None:
    page = render_settings_page()
    for name in tomllib.loads(format_settings_file(ApiSettings())):
        assert f"| `{name}` | `CATALOG_API_{name.upper()}` |" in page


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"CATALOG_API_PROT": "1"}, "CATALOG_API_PROT: there is no setting 'prot'"),
        ({"CATALOG_API_PORT": "http"}, "CATALOG_API_PORT: port = 'http'"),
        ({"CATALOG_API_PORT": "70000"}, "port"),
        ({"CATALOG_API_WORKERS": "0"}, "workers"),
        ({"CATALOG_API_WORKERS": "1e9"}, "workers"),
        ({"CATALOG_API_HEAD_SECONDS": "inf"}, "head_seconds"),
        ({"CATALOG_API_HEAD_SECONDS": "nan"}, "head_seconds"),
        ({"CATALOG_API_PROT": "1"}, "did you mean 'port'"),
        ({"CATALOG_API_LOG_REQUESTS": "perhaps"}, "log_requests"),
        ({"CATALOG_API_LOG_LEVEL": "loud"}, "log_level"),
        ({"CATALOG_API_URL_TEMPLATES": '{"nowhere": "{id}"}'}, "nowhere"),
        ({"CATALOG_API_URL_TEMPLATES": '{"store_a": "no id"}'}, "store_a"),
        ({"CATALOG_API_URL_TEMPLATES": '{"store_a": "https://example.org/{land}/{id}"}'}, "store_a = 'https://example.org/{land}/{id}'"),
        ({"CATALOG_API_URL_TEMPLATES": '{"store_a": "https://example.org/{id}/{"}'}, "no other braces"),
        ({"CATALOG_API_URL_TEMPLATES": '{"store_a": "example.org/{id}"}'}, "write https://"),
        ({"CATALOG_API_DASHBOARD_ORIGIN": "not an origin"}, "dashboard_origin = 'not an origin' is not of the form https://host"),
        ({"CATALOG_API_DASHBOARD_ORIGIN": "https://catalog.example.org/dashboard"}, "https://host"),
        ({"CATALOG_API_DASHBOARD_ORIGIN": "catalog.example.org"}, "https://host"),
        ({"CATALOG_API_CLIENT_ADDRESS_HEADER": "X-Forwarded-For\n"}, r"client_address_header = 'X-Forwarded-For\n'"),
        ({"CATALOG_API_CLIENT_ADDRESS_HEADER": "X-Real-IP, Forwarded"}, "one name"),
        ({"CATALOG_API_CLIENT_ADDRESS_HEADER": "X-Größe"}, "one name"),
        ({"CATALOG_API_MAIL_SENDER": "a@example.org\nBcc: b@example.org"}, "mail_sender"),
        ({"CATALOG_API_MAIL_SERVER": "smtp://me:secret@host:port"}, "mail_server is not of the form"),
        ({"CATALOG_API_SETTINGS": "/no/such/file"}, "cannot be read"),
    ],
)
def test_invalid_setting_is_refused_with_its_source(environment: dict[str, str], said: str) -> None:
    with pytest.raises(SettingsError) as raised:
        load_settings(environment)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dashboard_origin", "https://catalog.example.org"),
        ("dashboard_origin", "http://127.0.0.1:8000/"),
        ("dashboard_origin", "https://[::1]:8443"),
        ("client_address_header", "X-Forwarded-For"),
        ("mail_sender", "Music catalog <catalog@example.org>"),
        ("mail_server", "smtps://me:p:w%40d@mail.example.org:465"),
        ("mail_server", "smtp://localhost"),
        ("mail_server", ""),
    ],
)
def test_setting_of_its_form_is_taken(name: str, value: str) -> None:
    assert getattr(load_settings({}, {name: value}), name) == value


def test_wrong_mail_server_is_refused_without_its_password() -> None:
    with pytest.raises(SettingsError) as raised:
        load_settings({}, {"mail_server": "smtp://me:secret@host:port"})
    assert "secret" not in str(raised.value)

"""The reference page at `/v1/docs`: rendered once from the OpenAPI description; no script, nothing from another site (contract A1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup, escape

_HERE = Path(__file__).parent


def render_reference_page(document: dict[str, Any]) -> bytes:
    """Render the page of a description."""
    pages = Environment(loader=FileSystemLoader(_HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    pages.filters |= {"marked": _mark_code, "kind": _describe_type}
    return pages.get_template("page.html").render(document=document, schemas=document["components"]["schemas"]).encode()


def read_reference_style() -> bytes:
    """Read the style sheet of the page."""
    return (_HERE / "style.css").read_bytes()


def _mark_code(text: str) -> Markup:
    """Mark the parts of a text between backticks as code."""
    parts = text.split("`")
    return Markup("").join(Markup("<code>{}</code>").format(part) if number % 2 else escape(part) for number, part in enumerate(parts))


def _describe_type(schema: dict[str, Any]) -> Markup:
    """Describe a schema in a few words, with links to the schemas that it names."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return Markup('<a href="#schema-{0}">{0}</a>').format(name)
    if "anyOf" in schema:
        return Markup(" or ").join(_describe_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return Markup(" | ").join(Markup("<code>{}</code>").format(one) for one in schema["enum"])
    if schema.get("type") == "array":
        return Markup("array of {}").format(_describe_type(schema.get("items", {})))
    kind = escape(schema.get("format", schema.get("type", "any")))
    bounds = [f"{word} {schema[key]}" for key, word in _BOUNDS.items() if key in schema]
    return Markup("{}").format(", ".join([str(kind), *bounds]))


_BOUNDS = {"minimum": "from", "maximum": "to", "maxLength": "characters at most", "default": "default"}

"""Sample requests as commands of curl, as Python and as JavaScript, to copy from the reference page.

They read BASE_URL and API_KEY from the environment, and ids that an earlier request made (STREAM_ID ...). Out of scope: which requests
there are (sample_requests.py).
"""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

from catalog_api.reference.sample_requests import MADE_IDS, SampleRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

ID_VARIABLES: Mapping[str, str] = {name: name.upper() for name, _ in MADE_IDS.values()}
"""By value that a request makes, the variable that later requests read."""
_NAME = re.compile(r"\$([a-z_]+)")


def print_curl(method: str, path: str, request: SampleRequest) -> str:
    """Return the request as a command of a shell."""
    target = _NAME.sub(lambda found: "$" + found[1].upper(), request.build_target(path))
    lines = [f'curl -sS --fail-with-body{"" if method == "GET" else f" -X {method}"} "$BASE_URL{target}"', '-H "x-api-key: $API_KEY"']
    lines += [f"-H {shlex.quote(f'{name}: {value}')}" for name, value in _list_headers(request).items()]
    if request.body is not None:
        lines.append("-d " + shlex.quote(json.dumps(request.body, ensure_ascii=False)))
    elif request.text is not None:
        lines.append("--data-binary " + shlex.quote(request.text))
    elif request.file is not None:
        lines.append(f"--data-binary @{request.file}")
    return " \\\n  ".join(lines)


def _list_headers(request: SampleRequest) -> dict[str, str]:
    headers = {"content-type": request.media_type} if request.has_body else {}
    return headers | ({"idempotency-key": request.idempotency_key} if request.idempotency_key else {})


def print_python(method: str, path: str, request: SampleRequest, *, is_file: bool) -> str:
    """Return the request in Python, with httpx. `is_file`: the answer is not JSON."""
    target = _NAME.sub(lambda found: f"{{os.environ['{found[1].upper()}']}}", request.build_target(path))
    headers = ", ".join(f'"{name}": {json.dumps(value)}' for name, value in _list_headers(request).items())
    options = [f'headers={{"x-api-key": os.environ["API_KEY"]{", " if headers else ""}{headers}}}']
    if request.body is not None:
        options.append(f"json={_write_python(request.body)}")
    elif request.text is not None:
        options.append(f"content={json.dumps(request.text)}")
    elif request.file is not None:
        options.append(f'content=pathlib.Path("{request.file}").read_bytes()')
    lines = ["import os", *(["import pathlib"] if request.file else []), "import httpx", "", "answer = httpx.request(", f'    "{method}",']
    lines += [f"    f\"{{os.environ['BASE_URL']}}{target}\",", *(f"    {option}," for option in options), "    timeout=60,", ")"]
    return "\n".join([*lines, "answer.raise_for_status()", f"print(answer.{'text' if is_file else 'json()'})"])


def _write_python(value: Any) -> str:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)}: {_write_python(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_write_python(one) for one in value) + "]"
    return repr(value) if value is None or isinstance(value, bool) else json.dumps(value, ensure_ascii=False)


def print_javascript(method: str, path: str, request: SampleRequest, *, is_file: bool) -> str:
    """Return the request as a JavaScript module, for Node from version 18 on."""
    target = _NAME.sub(lambda found: f"${{process.env.{found[1].upper()}}}", request.build_target(path))
    headers = "".join(f", {json.dumps(name)}: {json.dumps(value)}" for name, value in _list_headers(request).items())
    options = [f'method: "{method}"', f'headers: {{"x-api-key": process.env.API_KEY{headers}}}']
    lines = []
    if request.body is not None:
        options.append(f"body: JSON.stringify({json.dumps(request.body, ensure_ascii=False)})")
    elif request.text is not None:
        options.append(f"body: {json.dumps(request.text)}")
    elif request.file is not None:
        lines.append('import { readFileSync } from "node:fs";\n')
        options.append(f'body: readFileSync("{request.file}")')
    lines += [f"const answer = await fetch(`${{process.env.BASE_URL}}{target}`, {{", *(f"  {option}," for option in options), "});"]
    lines += ["if (!answer.ok) throw new Error(await answer.text());"]
    return "\n".join([*lines, f"console.log(await answer.{'text' if is_file else 'json'}());"])

"""The report as one HTML page: no network, complete without its script, nothing in it that could run but that script.

The page is made from the same structure as the JSON report, by a template of jinja2 that escapes every value. A content
security policy allows the page's own style and script by their hashes and nothing else: a kernel's name that is markup
is shown, and could not run if it were not.
"""

from __future__ import annotations

import base64
import hashlib
import math
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ssmtool.errors import SsmtoolError
from ssmtool.report.ci import worst_nmse
from ssmtool.report.formats.text import printable

if TYPE_CHECKING:
    import jinja2

# Powers of ten that a bar of errors covers: from below a float64's own rounding to as large as the expectation.
_LEAST, _MOST = -18, 0


def require_jinja() -> None:
    """Raise SsmtoolError, with the command that mends it, where jinja2 is not installed."""
    import importlib.util

    if importlib.util.find_spec("jinja2") is None:
        raise SsmtoolError("an HTML report needs jinja2", hint="pip install 'ssmtool[report]'")


def render_html(document: dict[str, Any]) -> str:
    """The page of a report's structure (`ssmtool.ci.document`). Raises SsmtoolError without jinja2."""
    require_jinja()
    style, script = _text("page.css"), _text("page.js")
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    template = _environment().get_template("page.html.j2")
    page = template.render(report=document, policy=policy, style=_markup(style), script=_markup(script))
    return f"{page}\n"


def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_text),
        autoescape=True,
        # Keys without a value are left out of the JSON, so a part that is missing is an empty place and no error.
        undefined=jinja2.ChainableUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters |= {
        "number": number,
        "log_width": log_width,
        "image": image,
        "signed": signed,
    }
    environment.globals["worst"] = worst_nmse
    return environment


def _finalize(value: Any) -> Any:
    """Control characters and marks that turn the direction of writing are replaced, as in every other format."""
    return printable(value) if type(value) is str else value


def _text(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _markup(text: str) -> Any:
    """Our own style and script, which are no text to escape."""
    from markupsafe import Markup

    return Markup(text)


def number(value: Any) -> str:
    """`1.6e-14`, `31`, `-` for None; words stay."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return "0" if value == 0 else f"{value:.1e}" if abs(value) < 0.01 or abs(value) >= 1000 else f"{value:.2f}"
    return str(value)


def signed(value: int | None) -> str:
    """A change: `+3`, `-1`, `0`, `-` where there is nothing to compare with."""
    return "-" if value is None else f"{value:+d}" if value else "0"


def log_width(value: Any, width: int = 100) -> float:
    """Where an error lies between 1e-18 and 1, on a logarithmic axis `width` long; NaN and infinities at the end."""
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return float(width)
    if value <= 0:
        return 0.0
    return round(width * min(1.0, max(0.0, (math.log10(value) - _LEAST) / (_MOST - _LEAST))), 1)


def image(svg: str) -> str:
    """An SVG as the address of an image: what is in an image cannot run, whatever it is."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode('utf-8', 'replace')).decode()}"

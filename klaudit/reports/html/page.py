"""The one file: head, content-security-policy, style sheet and script.  Nothing is loaded, and nothing else may run."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from klaudit import __version__
from klaudit.reports.html.markup import Html, element, raw


def policy() -> str:
    """Only our own style sheet and script, known by their hashes, count; no request, no form, no attribute of style or events."""
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_hash(asset('style.css'))}'",
            f"script-src '{_hash(asset('script.js'))}'",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types klaudit",
        )
    )


def head(title: str) -> Html:
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy()),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="referrer", content="no-referrer"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content=f"klaudit {__version__}"),
        element("title", title),
        element("style", raw(asset("style.css"))),
    )


def script() -> Html:
    return element("script", raw(asset("script.js")))


@cache
def asset(name: str) -> str:
    """A file that lies beside this one; ASCII, with plain line ends, so that its hash is that of what a browser sees."""
    return (files(__package__) / "assets" / name).read_bytes().decode("ascii").replace("\r\n", "\n")


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()

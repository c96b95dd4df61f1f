"""One comment on a pull request that is brought up to date, run after run: `python -I -m klaudit.ci.comment`.

    KLAUDIT_REPORT   the Markdown file to show
    KLAUDIT_FINDINGS how many findings it has: with none there is nothing to say, unless an earlier comment is to be corrected
    PULL_REQUEST     the number of the pull request
    GITHUB_TOKEN     with `pull-requests: write`; never printed, and sent to GITHUB_API_URL alone
    GITHUB_REPOSITORY, GITHUB_API_URL   set by the runner
    KLAUDIT_BOT      who the token speaks for, by default `github-actions[bot]`

Our comment is the one that starts with a marker *and* was written by that bot: anybody can write the marker.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPMessage
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

MARKER = "<!-- klaudit -->"
BOT = "github-actions[bot]"
_LONGEST = 65_000  # characters; GitHub takes 65,536
_CUT = "\n\n(cut here: the rest is in the job summary)\n"
_PAGE = 100
_MOST_PAGES = 100
_TRIES = 3
_SECONDS = 30


class RefusedError(Exception):
    """The server does not let this token do it: a pull request from a fork, or a missing permission."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Another host must not be sent the token."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


class Comments(Struct, frozen=True):
    """The comments of one pull request.  `api` is the address of the server, `pause` what grows between attempts, in seconds."""

    api: str
    repository: str
    number: str
    token: str
    pause: float = 2.0

    def own(self, bot: str) -> tuple[int, str] | None:
        """Number and text of our comment, the oldest if there are several."""
        for page in range(1, _MOST_PAGES + 1):
            rows = self._call("GET", f"issues/{self.number}/comments?per_page={_PAGE}&page={page}")
            for row in rows:
                author = (row.get("user") or {}).get("login")
                text = row.get("body") or ""
                if author == bot and text.startswith(MARKER):
                    return int(row["id"]), text
            if len(rows) < _PAGE:
                break
        return None

    def add(self, text: str) -> None:
        self._call("POST", f"issues/{self.number}/comments", {"body": text})

    def change(self, comment: int, text: str) -> None:
        self._call("PATCH", f"issues/comments/{comment}", {"body": text})

    def _call(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        """Raises RefusedError, and OSError for what trying again does not mend."""
        request = urllib.request.Request(
            f"{self.api}/repos/{self.repository}/{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Accept": "application/vnd.github+json",
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
                "User-Agent": "klaudit",
                "X-GitHub-Api-Version": "2022-11-28",
            },
        )
        opener = urllib.request.build_opener(_NoRedirect)
        for attempt in range(1, _TRIES + 1):
            try:
                with opener.open(request, timeout=_SECONDS) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                if error.code in (403, 404):
                    raise RefusedError(f"{error.code} {error.reason}") from None
                if error.code < 500 or attempt == _TRIES:
                    raise
            time.sleep(self.pause * attempt)
        raise AssertionError("the last attempt returns or raises")


def comment(comments: Comments, report: str, bot: str = BOT, *, is_clean: bool = False) -> str:
    """Shows the report; a clean one only where an earlier comment has to be corrected.  Returns what was done."""
    text = report if report.startswith(MARKER) else f"{MARKER}\n{report}"
    if len(text) > _LONGEST:
        text = text[:_LONGEST].rpartition("\n")[0] + _CUT
    earlier = comments.own(bot)
    if earlier is None:
        if is_clean:
            return "not needed"
        comments.add(text)
        return "added"
    if earlier[1].replace("\r\n", "\n").strip() == text.strip():
        return "unchanged"
    comments.change(earlier[0], text)
    return "brought up to date"


def main(environment: Mapping[str, str]) -> int:
    """Runs the step.  Returns 0 also where the server refuses: the job summary says the same."""
    number, repository = environment.get("PULL_REQUEST", ""), environment.get("GITHUB_REPOSITORY", "")
    if not re.fullmatch(r"[0-9]+", number) or not re.fullmatch(r"[\w.-]+/[\w.-]+", repository):
        print("klaudit: no pull request to comment on", file=sys.stderr)
        return 2
    comments = Comments(
        environment.get("GITHUB_API_URL") or "https://api.github.com",
        repository,
        number,
        environment.get("GITHUB_TOKEN", ""),
    )
    try:
        report = Path(environment["KLAUDIT_REPORT"]).read_text(encoding="utf-8")
        is_clean = environment.get("KLAUDIT_FINDINGS") == "0"
        done = comment(comments, report, environment.get("KLAUDIT_BOT") or BOT, is_clean=is_clean)
    except RefusedError as error:
        print(f"::notice title=klaudit::no comment: the token may not write ({error}); see the job summary")
        return 0
    except (OSError, KeyError, ValueError) as error:
        print(f"klaudit: no comment: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(f"klaudit: comment {done}")
    return 0


if __name__ == "__main__":
    sys.exit(main(os.environ))

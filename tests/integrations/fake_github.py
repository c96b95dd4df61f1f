"""A server on this machine that speaks as much of GitHub's interface as the comment needs."""

from __future__ import annotations

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from klaudit.ci.comment import BOT

PULL_REQUEST = "7"
TOKEN = "a-secret"


class GitHub(ThreadingHTTPServer):
    """Comments of one repository, kept in memory."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.comments: list[dict[str, Any]] = []
        self.calls: list[str] = []
        self.answers: list[int] = []  # statuses to answer with before anything is done

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def write(self, author: str, text: str) -> int:
        number = len(self.comments) + 1
        self.comments.append({"id": number, "user": {"login": author}, "body": text})
        return number

    def texts(self, author: str = BOT) -> list[str]:
        return [each["body"] for each in self.comments if (each["user"] or {}).get("login") == author]


class _Handler(BaseHTTPRequestHandler):
    server: GitHub

    def _handle(self) -> None:
        self.server.calls.append(self.command)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.server.answers:
            return self._answer(self.server.answers.pop(0), {"message": "no"})
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            return self._answer(401, {})
        where = urlsplit(self.path)
        if match := re.fullmatch(r"/repos/octo/project/issues/7/comments", where.path):
            if self.command == "GET":
                query = parse_qs(where.query)
                size, page = int(query["per_page"][0]), int(query["page"][0])
                assert size <= 100
                return self._answer(200, self.server.comments[size * (page - 1) : size * page])
            if self.command == "POST":
                self.server.write(BOT, json.loads(body)["body"])
                return self._answer(201, {})
        if (
            match := re.fullmatch(r"/repos/octo/project/issues/comments/(\d+)", where.path)
        ) and self.command == "PATCH":
            self.server.comments[int(match[1]) - 1]["body"] = json.loads(body)["body"]
            return self._answer(200, {})
        return self._answer(404, {})

    do_GET = do_POST = do_PATCH = _handle  # noqa: N815 - the names that http.server calls

    def _answer(self, status: int, value: object) -> None:
        self.send_response(status)
        if status in (301, 302, 307, 308):
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass

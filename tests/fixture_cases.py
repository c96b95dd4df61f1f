"""Fixture projects: `fixtures/<case>/input` and what a scan of it must say, `fixtures/<case>/report.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.reports import json as json_report
from klaudit.reports.view import View

FOLDER = Path(__file__).resolve().parent.parent / "fixtures"
CASES = sorted(path.parent.name for path in FOLDER.glob("*/input"))


def reduced(case: str) -> dict[str, Any]:
    """The report of a case without what changes from run to run: time and version."""
    scanned = scan([str(FOLDER / case / "input")], Options(verbose=True))
    report = json.loads("".join(json_report.render(scanned, View())))
    assert not any("internal error" in error["message"] for error in report["errors"]), report["errors"]
    for row, finding in zip(report["findings"], scanned.findings, strict=True):
        row["fingerprint"] = finding.identity  # the fingerprint itself depends on where the repository lies
    summary = {key: report["summary"][key] for key in ("setups", "findings", "by_rule", "errors")}
    return {"summary": summary, "setups": report["setups"], "findings": report["findings"], "errors": report["errors"]}

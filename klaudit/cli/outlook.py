"""What set-ups would train with after `klaudit fix`, for reports that tell it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from klaudit.cli.session import Session
from klaudit.model import Report, Setup
from klaudit.reports.view import Which, which

_LONGEST = 60.0  # seconds of a scan: a plan of its migrations takes two or three times as long
_SHARE = 4  # of the time budget that a scan may have taken for a plan to fit in as well


def outlook(session: Session, report: Report) -> Callable[[], Mapping[Which, Setup]]:
    """Plans the migrations when it is asked, once; empty where there is nothing to plan, or a plan could take too long."""
    made: list[Mapping[Which, Setup]] = []

    def after() -> Mapping[Which, Setup]:
        if not made:
            made.append(_planned(session) if _is_cheap(session, report) else {})
        return made[0]

    return after


def _is_cheap(session: Session, report: Report) -> bool:
    """What hangs or breaks a scan would do so again."""
    timeout = session.configuration.options.timeout
    is_quick = report.seconds < (_LONGEST if timeout is None else min(_LONGEST, timeout / _SHARE))
    return bool(report.findings) and not report.errors and is_quick


def _planned(session: Session) -> Mapping[Which, Setup]:
    from klaudit.fixes.migration import Request
    from klaudit.fixes.planning import plan

    try:
        planned = plan(session.given.paths, session.configuration.options, Request())
    except Exception:  # it is an extra: no fault in it may keep the findings from being reported
        return {}
    return {which(each.before): each.after for each in planned.migrations if each.after is not None}

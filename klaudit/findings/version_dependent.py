"""KLA211: the verdict flips between versions that the pin allows."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import key
from klaudit.frameworks.detect import allowed_releases
from klaudit.frameworks.pins import is_commit
from klaudit.model import Evidence


@judges("version-dependent")
def judge(subject: Subject) -> Iterator[Draft]:
    launch = subject.resolution.launch
    eras: list[tuple[str, str, str, str]] = []  # first release, last release, verdict, weight
    for release in allowed_releases(launch.framework, launch.version):
        if subject.resolution.launch.trainer.versions.text and not _known(subject, release):
            continue
        setup = subject.under(release).setup
        if eras and eras[-1][2:] == (setup.verdict, setup.score_weight):
            eras[-1] = (eras[-1][0], release, setup.verdict, setup.score_weight)
        else:
            eras.append((release, release, setup.verdict, setup.score_weight))
    if len({verdict for _, _, verdict, _ in eras}) < 2:
        return
    shown = "; ".join(f"{first}..{last}: {verdict} (w(d) = {weight})" for first, last, verdict, weight in eras)
    version = launch.version
    may_be = "may be any of the" if is_commit(version.allowed) else "allows"
    yield Draft(
        launch.head,
        f"{launch.framework.title} {version.allowed} {may_be} releases with different verdicts: {shown}",
        related=(Evidence("requirement", version.allowed, "file", version.path, version.line),),
        key=key(subject.resolution),
    )


def _known(subject: Subject, release: str) -> bool:
    return subject.under(release).version in subject.resolution.launch.trainer.versions

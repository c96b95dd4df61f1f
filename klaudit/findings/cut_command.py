"""KLA210: a comment or a missing backslash ends the command; the settings below never reach the program."""

from __future__ import annotations

from collections.abc import Iterator

from klaudit.findings.judging import Draft, Subject, judges
from klaudit.findings.wording import key
from klaudit.model import Fix


@judges("cut-command")
def judge(subject: Subject) -> Iterator[Draft]:
    resolution = subject.resolution
    names = {name.name for spec in resolution.launch.trainer.settings.values() for name in spec.names}
    for word in resolution.launch.stray:
        name = word.shown.partition("=")[0].lstrip("+~")
        about_kl = name in names
        yield Draft(
            word.span,
            f"{word.shown} never reaches {resolution.launch.target}: the command ends above it, and the shell runs this line as a command"
            " of its own",
            confidence="high" if about_kl else "medium",
            severity=None if about_kl else "warning",
            fix=Fix("none", "move the comment out of the command, or end the line above with a backslash"),
            key=key(resolution, name),
        )

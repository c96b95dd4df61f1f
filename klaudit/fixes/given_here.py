"""Where a file decides what a launch trains with whose command stands in another file."""

from __future__ import annotations

from klaudit.model import Setup


def given_here(setup: Setup) -> str:
    """`name at path:line` for each setting of its KL terms that the file of the set-up itself gives; the call where nobody sees which."""
    evidence = (each for term in setup.terms if term.active is not False for each in term.evidence)
    places = dict.fromkeys(f"{each.setting} at {each.path}:{each.line}" for each in evidence if each.path == setup.path)
    return ", ".join(places) or f"what {setup.path}:{setup.span.line} gives to it"

#!/usr/bin/env python3
"""Writes the tables of docs/theory.md, between their markers, from klaudit/theory: what each configuration descends.

python tools/make_theory_table.py            write the file
python tools/make_theory_table.py --check    exit 1 where the file is not up to date
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from klaudit.theory import TABLE, VARIANTS, Row

PAGE = Path(__file__).parents[1] / "docs" / "theory.md"
HEAD = ("configuration", "score weight w(d)", "on-policy it descends", "from a stale policy", "verdict", "note")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="only compare")
    check = parser.parse_args(arguments).check
    written = PAGE.read_text(encoding="utf-8")
    wanted = filled(written)
    if not check:
        PAGE.write_text(wanted, encoding="utf-8")
    return int(check and written != wanted)


def filled(page: str) -> str:
    """The page with its generated tables up to date."""
    for name, rows in (("table", TABLE.values()), ("variants", VARIANTS.values())):
        block = f"<!-- {name} -->\n{_table(rows)}\n<!-- end -->"
        places = re.findall(rf"<!-- {name} -->.*?<!-- end -->", page, flags=re.DOTALL)
        if len(places) != 1:
            raise ValueError(f"docs/theory.md should have one place for the {name}, not {len(places)}")
        page = page.replace(places[0], block)
    return page


def _table(rows: Iterable[Row]) -> str:
    shown = [row for row in rows if row.gradient != "none"]
    cells = [
        (
            row.id,
            f"`{row.weight_text}`",
            _objective(row),
            "" if row.stale is None else str(row.stale),
            row.verdict,
            row.note,
        )
        for row in shown
    ]
    return "\n".join(
        "| " + " | ".join(text.replace("|", "\\|") for text in line) + " |"
        for line in (HEAD, ("---",) * len(HEAD), *cells)
    )


def _objective(row: Row) -> str:
    return row.descends if row.objective is None else str(row.objective)


if __name__ == "__main__":
    sys.exit(main())

"""Writes `fixtures/*/report.json` anew; read the difference before you commit it.

python tools/update_fixtures.py [CASE ...]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.fixture_cases import CASES, FOLDER, reduced


def main(cases: list[str]) -> None:
    for case in cases or CASES:
        text = json.dumps(reduced(case), indent=1, ensure_ascii=False) + "\n"
        (FOLDER / case / "report.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Build hook of the wheel: ships the YAML files of rules/ compiled beside them (klaudit/compiled.py says what for)."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompileRules(BuildHookInterface[Any]):
    """A broken rule file ends the build with the message that a scan would give."""

    PLUGIN_NAME = "compile-rules"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # the rules of a checkout are still being written
            return
        self._folder = tempfile.TemporaryDirectory()
        for name, data in compiled_rules(Path(self.root)):
            file = Path(self._folder.name, name)
            file.write_bytes(data)
            build_data["force_include"][str(file)] = f"klaudit/rules/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self._folder.cleanup()


def compiled_rules(root: Path) -> Iterator[tuple[str, bytes]]:
    """Names and bytes of the compiled rules of the checkout at `root`, made by its own readers.  Raises RulesError."""
    sys.path.insert(0, str(root))
    try:
        from msgspec.structs import replace

        from klaudit.compiled import SUFFIX, encode
        from klaudit.findings.catalogue import Entry, read
        from klaudit.frameworks.load import load_framework
        from klaudit.frameworks.rules import Framework
    finally:
        sys.path.remove(str(root))
    frameworks = {
        path.name: (path.read_bytes(), replace(load_framework(path), path=path.name))
        for path in sorted((root / "rules" / "frameworks").glob("*.yaml"))
    }
    yield f"frameworks{SUFFIX}", encode(frameworks, Framework)
    findings = {
        path.name: (path.read_bytes(), read(path, path.read_bytes()))
        for path in sorted((root / "rules" / "findings").glob("*.yaml"))
    }
    yield f"findings{SUFFIX}", encode(findings, Entry)

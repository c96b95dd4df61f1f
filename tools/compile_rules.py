"""Build hook of the wheel: ships rules/frameworks/*.yaml compiled beside them (klaudit/frameworks/compiled.py says what for)."""

from __future__ import annotations

import sys
import tempfile
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
        root = Path(self.root)
        name, data = compiled_rules(root)
        file = Path(self._folder.name, name)
        file.write_bytes(data)
        build_data["force_include"][str(file)] = f"klaudit/rules/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self._folder.cleanup()


def compiled_rules(root: Path) -> tuple[str, bytes]:
    """Name and bytes of the compiled rules of the checkout at `root`, made by its own loader.  Raises RulesError."""
    sys.path.insert(0, str(root))
    try:
        from klaudit.frameworks.compiled import NAME, encode
        from klaudit.frameworks.load import load_framework
    finally:
        sys.path.remove(str(root))
    paths = sorted((root / "rules" / "frameworks").glob("*.yaml"))
    return NAME, encode({path.name: (path.read_bytes(), load_framework(path)) for path in paths})

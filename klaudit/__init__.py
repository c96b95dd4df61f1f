"""klaudit: finds, judges and migrates KL penalties in RL training of language models.

`klaudit.scan(path)` is the library; docs/api.md says what of it is stable.  What is exported is imported when it is first used.
"""

__version__ = "0.1.0"
__all__ = [
    "Confidence",
    "ConfigurationError",
    "Edit",
    "Evidence",
    "Finding",
    "Fix",
    "FrameworkVersion",
    "KlauditError",
    "Placement",
    "Problem",
    "Report",
    "RulesError",
    "Setup",
    "Severity",
    "Span",
    "Term",
    "Unknown",
    "Verdict",
    "Withheld",
    "__version__",
    "scan",
]

TYPE_CHECKING = False  # type checkers know the name; importing it from typing would cost more than all of this file
if TYPE_CHECKING:
    from klaudit.api import scan
    from klaudit.configuration import ConfigurationError
    from klaudit.errors import KlauditError
    from klaudit.frameworks.load import RulesError
    from klaudit.model import (
        Confidence,
        Edit,
        Evidence,
        Finding,
        Fix,
        FrameworkVersion,
        Placement,
        Problem,
        Report,
        Setup,
        Severity,
        Span,
        Term,
        Unknown,
        Verdict,
        Withheld,
    )
else:
    _HOMES = {
        "scan": "klaudit.api",
        "ConfigurationError": "klaudit.configuration",
        "KlauditError": "klaudit.errors",
        "RulesError": "klaudit.frameworks.load",
    }

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'klaudit' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(_HOMES.get(name, "klaudit.model")), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})

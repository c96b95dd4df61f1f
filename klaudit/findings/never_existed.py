"""KLA204 for APIs that circulate in guides but that no release ever had."""

from __future__ import annotations

from klaudit.findings.judging import Draft, finding
from klaudit.frameworks.gather import Phantom
from klaudit.model import Finding, Fix


def never_existed(phantom: Phantom) -> Finding:
    """The finding for a call of such an API."""
    framework, api, item = phantom.framework, phantom.api, phantom.item
    given = [setting.name for setting in item.settings if setting.name in api.keywords]
    name = item.symbol.rpartition(".")[2]
    draft = Draft(
        item.span,
        f"{framework.title} never had {name}({', '.join(f'{each}=...' for each in given)}); {api.instead}",
        fix=Fix("none", api.instead),
        severity="error",
        key=name,
    )
    return finding("unknown-setting", draft, framework.id)

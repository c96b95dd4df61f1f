"""Programs that read `key=value`, as `OmegaConf.from_cli` does: no prefixes, values as YAML, the last one wins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from klaudit.frameworks.systems.layered import LayeredConfiguration
from klaudit.model import Setting, Unknown, Value
from klaudit.readers.document import ScalarNode, Word
from klaudit.readers.scalars import resolve_scalar
from klaudit.readers.words import partition, value_of, written_in


def dotlist_configuration(words: Iterable[Word], base: Mapping[str, Setting]) -> LayeredConfiguration:
    """What the arguments set, over `base` (config files, the program's own defaults)."""
    return LayeredConfiguration(parse_dotlist(words), base)


def parse_dotlist(words: Iterable[Word]) -> list[Setting]:
    settings: list[Setting] = []
    for word in words:
        split = partition(word, "=")
        if split is None or (name := split[0].text) is None or name.startswith("-"):
            continue
        origin, source = written_in(split[1])
        settings.append(Setting(name, _parsed(split[1]), word.span, split[1].span, origin, source, raw=word.shown))
    return settings


def typed(settings: Iterable[Setting]) -> list[Setting]:
    """Settings that were given as `key=value` texts, with the values that the program makes of them; flags stay text."""
    return [
        setting if setting.raw.startswith("-") else replace(setting, value=_value(setting.value))
        for setting in settings
    ]


def _parsed(word: Word) -> Value:
    return _value(value_of(word))


def _value(value: Value) -> Value:
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text[:1] in "\"'" and text[-1:] == text[:1] and len(text) > 1:
        return text[1:-1]
    if "${" in text:
        return Unknown((text,), text)
    return resolve_scalar(ScalarNode(text, True, 0, 0), "omegaconf")

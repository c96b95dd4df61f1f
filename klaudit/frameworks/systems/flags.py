"""Programs that read `--flag value`: argparse and what is built on it.

As argparse does: the last value wins, `--flag=value` and `--flag value` are the same, and where the rules say so a flag may be cut
to any unambiguous beginning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from klaudit.frameworks.rules import Trainer
from klaudit.frameworks.systems.layered import LayeredConfiguration
from klaudit.model import Setting, Value
from klaudit.readers.document import Word
from klaudit.readers.words import cover, partition, value_of, written_in

_NEGATIVE_NUMBER = re.compile(r"-\d|-\.\d")


def flags_configuration(
    trainer: Trainer, words: Iterable[Word], base: Mapping[str, Setting] | None = None
) -> LayeredConfiguration:
    """What the arguments set, over `base` (a config file's keys, the program's own defaults)."""
    keys = _Keys(trainer)
    return LayeredConfiguration(parse_flags(words, keys), base, normalise=keys)


class _Keys:
    """The spellings of a trainer's flags: dashes, underscores where both are accepted, and abbreviations."""

    def __init__(self, trainer: Trainer) -> None:
        self._either = trainer.dashes == "either"
        names = [name.name for spec in trainer.settings.values() for name in spec.names]
        self._known = {self._plain(name): name for name in names}
        self._prefixes = trainer.flag_prefixes
        self.switches = {
            self._plain(name.name) for spec in trainer.settings.values() if spec.type == "switch" for name in spec.names
        } | {self._plain(name.name) for spec in trainer.settings.values() for name in spec.names if name.has_const}

    def __call__(self, name: str) -> str:
        plain = self._plain(name)
        if plain in self._known or not self._prefixes or not plain:
            return plain
        longer = [known for known in self._known if known.startswith(plain)]
        return longer[0] if len(longer) == 1 else plain

    def spelling(self, name: str) -> str:
        """As the rules spell it; as it stands where they do not know it."""
        return self._known.get(self(name), name)

    def _plain(self, name: str) -> str:
        plain = name.lstrip("-")
        return plain.replace("-", "_") if self._either else plain


def parse_flags(words: Iterable[Word], keys: _Keys) -> list[Setting]:
    words = list(words)
    settings: list[Setting] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        split = partition(word, "=")
        name = (split[0] if split else word).text
        if name is None or not name.startswith("--") or name == "--":
            continue
        if split:
            settings.append(_setting(keys.spelling(name), word, split[1]))
        elif keys(name) in keys.switches or at == len(words) or _is_flag(words[at]):
            settings.append(_switch(keys.spelling(name), word))
        else:
            settings.append(_setting(keys.spelling(name), word, words[at]))
            at += 1
    return settings


def _is_flag(word: Word) -> bool:
    shown = word.shown
    return shown.startswith("-") and len(shown) > 1 and not _NEGATIVE_NUMBER.match(shown)


def _setting(name: str, flag: Word, value: Word) -> Setting:
    origin, source = written_in(value)
    known: Value = value_of(value)
    span = (
        flag.span
        if flag is value
        else cover(flag.span, value.site if value.span.path != flag.span.path else value.span)
    )
    return Setting(name, known, span, value.span, origin, source, raw=f"{flag.shown} {value.shown}")


def _switch(name: str, flag: Word) -> Setting:
    return Setting(name, True, flag.span, flag.span, "override", raw=flag.shown)

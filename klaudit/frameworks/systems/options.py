"""Options among a command's words: those that name config files, and the values of single ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from klaudit.readers.document import Word
from klaudit.readers.words import partition

_HYDRA_OPTIONS = (
    "--config-name",
    "--config-path",
    "--config-dir",
    "-cn",
    "-cp",
    "-cd",
    "--package",
    "--experimental-rerun",
)


def known_end(word: Word) -> str:
    """The text of a word, or of what follows its last unknown part: of `$PWD/config` the `/config`."""
    end = ""
    for piece in reversed(word.pieces):
        if piece.text is None:
            break
        end = piece.text + end
    return end


def split_options(
    words: Iterable[Word], with_value: Sequence[str] = _HYDRA_OPTIONS
) -> tuple[dict[str, str], list[Word]]:
    """The options `with_value` (Hydra's own unless said otherwise) and the overrides, entirely unknown words among them."""
    options: dict[str, str] = {}
    overrides: list[Word] = []
    waiting = ""
    for word in words:
        text = word.text
        shown = word.shown
        if waiting:
            options[waiting] = known_end(word)
            waiting = ""
        elif shown.startswith("-"):
            name, equals, value = shown.partition("=")
            name = {"-cn": "--config-name", "-cp": "--config-path", "-cd": "--config-dir"}.get(name, name)
            if equals:
                value_word = partition(word, "=")
                options[name] = known_end(value_word[1]) if value_word else value
            elif name in with_value:
                waiting = name
        elif "=" in shown or shown.startswith("~") or (text is None and shown):
            overrides.append(word)
    return options, overrides


def value_of_key(words: Iterable[Word], key: str) -> Word | None:
    """The value of the last `key=value`."""
    found = None
    for word in words:
        split = partition(word, "=")
        if split is not None and split[0].text == key:
            found = split[1]
    return found


def flag_value(words: Sequence[Word], flag: str) -> Word | None:
    """The value of the last `--flag value` or `--flag=value`."""
    found = None
    for at, word in enumerate(words):
        split = partition(word, "=")
        if word.text == flag and at + 1 < len(words):
            found = words[at + 1]
        elif split is not None and split[0].text == flag:
            found = split[1]
    return found

"""What a scalar means, which depends on who reads it: `off` is false to PyYAML and `1e-3` text, while OmegaConf reads a float."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, TypeAlias

from klaudit.model import Scalar, Unknown
from klaudit.patterns import rare
from klaudit.readers.document import ScalarNode
from klaudit.readers.toml_values import toml_scalar

Dialect: TypeAlias = Literal["yaml11", "omegaconf", "json", "toml", "text"]

_TAG = "tag:yaml.org,2002:"
# The float form that OmegaConf adds to PyYAML's: an exponent needs neither a dot nor a sign.
_OMEGACONF_FLOAT = rare(
    r"[-+]?[0-9]+(?:_[0-9]+)*\.[0-9_]*(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?[0-9]+(?:_[0-9]+)*[eE][-+]?[0-9]+"
    r"|\.[0-9]+(?:_[0-9]+)*(?:[eE][-+][0-9]+)?"
    r"|[-+]?[0-9]+(?:_[0-9]+)*(?::[0-5]?[0-9])+\.[0-9_]*"
    r"|[-+]?\.(?:inf|Inf|INF)"
    r"|\.(?:nan|NaN|NAN)"
)
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)((?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)")
_JSON_WORDS: dict[str, Scalar] = {
    "true": True, "false": False, "null": None, "NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf"),
}  # fmt: skip


def resolve_scalar(node: ScalarNode, dialect: Dialect) -> Scalar | Unknown:
    """The value a program sees.

    - `yaml11`: PyYAML's safe loader, except that dates stay text.
    - `omegaconf`: OmegaConf's loader: PyYAML plus its own float form, without dates.
    - `json`, `toml`: those formats (`json` as Python reads it, with NaN and Infinity); dates stay text.
    - `text`: the characters as they stand.

    A tag that only a program's own constructor understands (`!ENV`, `!include`) gives Unknown, which names the tag.
    """
    return _resolve(node.text, node.plain, node.tag, dialect)


@lru_cache(maxsize=8192)
def _resolve(text: str, plain: bool, tag: str | None, dialect: Dialect) -> Scalar | Unknown:
    if dialect == "text" or (tag is None and not plain):
        return text
    if dialect == "json":
        return _json(text)
    if dialect == "toml":
        return toml_scalar(text)
    return _construct(text, tag if tag is not None else _implicit_tag(text, dialect))


def _implicit_tag(text: str, dialect: Dialect) -> str:
    import yaml  # all of it for a few expressions: not before there is a scalar

    for tag, pattern in yaml.resolver.Resolver.yaml_implicit_resolvers.get(text[:1], ()):
        if pattern.match(text) and not (dialect == "omegaconf" and tag == _TAG + "timestamp"):
            return str(tag)
    if dialect == "omegaconf" and text[:1] in "-+0123456789." and _OMEGACONF_FLOAT.fullmatch(text):
        return _TAG + "float"
    return _TAG + "str"


def _construct(text: str, tag: str) -> Scalar | Unknown:
    kind = tag.removeprefix(_TAG) if tag.startswith(_TAG) else ""
    if kind in ("str", "timestamp", "value", "merge", "binary"):
        return text
    import yaml

    node = yaml.ScalarNode(tag, text)
    constructor = yaml.constructor.SafeConstructor()
    try:
        if kind == "null":
            return None
        if kind == "bool":
            return bool(constructor.construct_yaml_bool(node))
        if kind == "int":
            return int(constructor.construct_yaml_int(node))
        if kind == "float":
            return float(constructor.construct_yaml_float(node))
    except (ValueError, KeyError, IndexError, OverflowError):  # `!!int many`, `0b_`: the loader itself fails here
        return Unknown((tag,), text)
    return Unknown((tag,), text)


def _json(text: str) -> Scalar | Unknown:
    if text in _JSON_WORDS:
        return _JSON_WORDS[text]
    number = _JSON_NUMBER.fullmatch(text)
    if number is None:
        return text
    try:
        return float(text) if number[1] else int(text)
    except ValueError:  # more digits than Python converts
        return Unknown(("digits",), text)

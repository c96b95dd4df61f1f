"""Interpolations, held against OmegaConf."""

from __future__ import annotations

from typing import Any

import pytest
from composing import has_unknown, names, resolved, same
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from klaudit.frameworks.compose.configuration import Configuration
from klaudit.frameworks.compose.interpolation import malformed
from klaudit.frameworks.compose.interpolation_grammar import parse_text
from klaudit.frameworks.compose.items import Branch, Nowhere, from_value
from klaudit.frameworks.compose.primitives import GrammarError
from klaudit.model import Unknown

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # OmegaConf on elements that are left out

ENVIRONMENT = {"SET": "3", "DYNAMIC": None}


def root(values: dict[str, Any]) -> Branch:
    item = from_value(values, Nowhere())
    assert isinstance(item, Branch)
    return item


def value(values: dict[str, Any], name: str) -> object:
    setting = Configuration(root(values), environment=ENVIRONMENT).get(name)
    return None if setting is None else setting.value


def disagreement(values: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("SET", "UNSET"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SET", "3")
    is_malformed = malformed(root(values), 1000) is not None
    try:
        config = OmegaConf.create(values)
    except Exception as error:
        return "" if is_malformed else f"OmegaConf refuses: {error}"
    if is_malformed:
        return "only klaudit refuses"
    for name in names(values):
        can_be_read, theirs = resolved(config, name)
        ours = value(values, name)
        if has_unknown(ours) if can_be_read else not has_unknown(ours):  # type: ignore[arg-type]
            return f"{name}: {ours}, OmegaConf {theirs if can_be_read else 'cannot read it'}"
        if can_be_read and not same(ours, theirs):
            return f"{name}: {ours}, OmegaConf {theirs}"
    return ""


BASE = {
    "a": 1,
    "f": 0.001,
    "t": True,
    "n": None,
    "s": "text",
    "d": {"x": "q", "y": {"z": 2}},
    "l": [1, {"x": "in"}],
    "k": "x",
}
TEXTS = r"""
${a}|${f}|${t}|${n}|x${a}y|${a}${s}|${t}!|${n}!|${f}!|${d.x}|${d.y.z}|${d}|${l}|${l.0}|${l.1.x}|${l.5}|${l[0]}|${d[x]}
${[d].x}|${d.${k}}|${d.y.${k}}|${missing}|${a.b}|${.b}|${..a}|${...a}|${ a }|${a|${}|${a b}|${a.}|${d .x}|a}|$a|$
\${a}|\\${a}|\\\${a}|a\b${a}|\|${m}|${n.x}|${oc.env:SET}|${oc.env:SET,4}|${oc.env:UNSET,1e-3}|${oc.env:UNSET,null}
${oc.env:UNSET,True}|${oc.env:UNSET,'a b'}|${oc.env:UNSET,"${a} c"}|${oc.env:UNSET,}|${oc.env:UNSET,${a}}
${oc.env:UNSET}|${oc.env:}|${oc.env:a,b,c}|${oc.env:${k},d}|${oc.select:a}|${oc.select:d.x,1}|${oc.select:q}
${oc.select:q.r,7}|${oc.select:m,3}|${oc.select:.a}|${oc.select:d}|${oc.select:a.b,5}|${oc.decode:"[1,2]"}
${oc.decode:${oc.env:UNSET,1e-3}}|${oc.decode:null}|${oc.decode:1}|${oc.create:[1,a,'b c',null,{x:1}]}
${oc.create:{x:${a},y:[${s}]}}|${oc.create:[]}|${oc.create:[,]}|${oc.dict.keys:d}|${oc.dict.values:d}
${oc.dict.keys:a}|${oc.deprecated:a}|${nope:1}|${oc.env:UNSET,a:b}|${oc.env:UNSET,a\,b}|${oc.env:UNSET,a  b }
${oc.env:UNSET,[}|${oc.env:UNSET,a'b'}|${oc.env:UNSET,é}|${oc.${k}:a}
""".strip()


@pytest.mark.parametrize("text", TEXTS.replace("\n", "|").split("|"))
def test_resolved_as_omegaconf_does(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert disagreement({**BASE, "m": "???", "v": text, "w": {"a": 5, "v": text, "l": [text]}}, monkeypatch) == ""


PIECE_WORDS = r"""
a b d.x x y . .. [ ] ${ ${ ${ } } } : oc.env: oc.select: oc.decode: SET UNSET , " ' \ 1 1e-3 null true { l 0 n k $ é ???"""
TEMPLATE_WORDS = r"""
${a} ${d.x} ${.x} ${..a} ${d} ${l.0} ${l.1} ${b} a${a}b ${a}${k} \${a} ${d.${k}} ${oc.select:d.q,7} ${oc.env:UNSET,1e-3} ${f.x}"""
PIECES, TEMPLATES = PIECE_WORDS.split(), TEMPLATE_WORDS.split()
texts = st.sampled_from(TEMPLATES) | st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join)
scalars = texts | st.sampled_from([1, None, True, 0.5, "s", "???", "d"])


@settings(max_examples=80, deadline=None)
@given(st.lists(scalars, min_size=8, max_size=8), st.sampled_from(["${d}", "${l}", "${f}", 1]))
def test_any_config_is_resolved_as_omegaconf_does(values: list[Any], link: object) -> None:
    config = {
        "a": values[0], "b": values[1], "d": {"x": values[2], "y": values[3], "z": {"x": values[4]}},
        "l": [values[5], values[6], {"x": values[7]}], "n": None, "k": "x", "e": link, "f": {"x": "${.y}", "y": 1},
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert disagreement(config, monkeypatch) == ""


@pytest.mark.parametrize(
    ("text", "hangs_on"),
    [
        ("${hydra:runtime.cwd}/x", "${hydra:runtime.cwd}"),
        ("${multiply:2,3}", "${multiply:2,3}"),
        ("${missing.key}", "missing.key"),
        ("${oc.env:HOME}/data", "HOME"),
        ("${oc.env:DYNAMIC,1}", "DYNAMIC"),
    ],
)
def test_what_cannot_be_known_says_what_it_hangs_on(text: str, hangs_on: str) -> None:
    assert value({"v": text}, "v") == Unknown((hangs_on,), text)


def test_cycles_are_unknown() -> None:
    cycle = {
        "a": "${b}",
        "b": "${c}",
        "c": "${a}",
        "d": {"e": "${d}"},
        "f": {"g": "${h}"},
        "h": {"i": "${f}"},
        "j": "${j}",
    }
    assert all(isinstance(value(cycle, name), Unknown) for name in ("a", "b", "c", "j"))
    assert has_unknown(value(cycle, "d.e"))  # type: ignore[arg-type]
    assert has_unknown(value(cycle, "f"))  # type: ignore[arg-type]


def test_doubling_interpolations_are_bounded() -> None:
    bomb: dict[str, Any] = {"a0": "x" * 10}
    bomb.update({f"a{i}": f"${{a{i - 1}}}" * 10 for i in range(1, 28)})
    assert isinstance(value(bomb, "a27"), Unknown)
    branches: dict[str, Any] = {"b0": {"x": 1}}
    branches.update({f"b{i}": {f"k{j}": f"${{b{i - 1}}}" for j in range(10)} for i in range(1, 20)})
    assert has_unknown(value(branches, "b19"))  # type: ignore[arg-type]


def test_long_chains_are_bounded() -> None:
    chain: dict[str, Any] = {f"a{i}": f"${{a{i + 1}}}" for i in range(3000)}
    assert isinstance(value(chain, "a0"), Unknown)


@pytest.mark.parametrize("text", ["${" * 10_000, "${a:" + "[" * 5_000, "${oc.env:" * 3_000, "${a." * 50 + "}" * 50])
def test_deep_interpolations_are_refused(text: str) -> None:
    with pytest.raises(GrammarError):
        parse_text(text)

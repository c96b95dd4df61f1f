"""Hydra's override grammar, held against Hydra's own parser."""

from __future__ import annotations

from typing import Any

import pytest
from composing import same
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, OverrideType, QuotedString, ValueType
from hypothesis import given, settings
from hypothesis import strategies as st

from klaudit.frameworks.compose.overrides import parse_override
from klaudit.model import Span, Unknown
from klaudit.readers.document import Piece, Word

PARSER = OverridesParser.create()
PREFIX = {"": OverrideType.CHANGE, "+": OverrideType.ADD, "++": OverrideType.FORCE_ADD, "~": OverrideType.DEL}

OVERRIDES = r'''
k=1|k=1_000|k=007|k=0x1F|k=1_|k=1e-3|k=.5|k=5.|k=+1|k=-|k=inf|k=-Inf|k=NaN|k=True|k=fALSE|k=off|k=nUll|k=|k= |k= a  |k=a b
k=[]|k=[ ]|k=[a, b ,[1,2]]|k=[a, ,b]|k={}|k={a: 1,b:{c: d}}|k={a: b:c}|k={a b: 1}|k={a}|k={a:1,a:2}|k=[a:b]|k=[1
k="a"|k='a'|k="a" |k= "a"|k="a"b|k=""|k="""|k="a\"b"|k="a\\"|k='it\'s'|k=["",'']|k='a''b'|k='|k='é'|k=é|k='["a","b"]'
k=a\,b|k=a\ b|k=\ a|k=a\ |k=a\b|k=\\|k=a\=b|k=a=b|k=a:|k=a: |k=: |k=a : b|k=(a)|k=a(b|k=a#b|k=a;b|k=a<b|k=http://x.y:80/z
k=${x}|k=${x}y|k=${x:a,b}|k=[${x:a,b},1]|k={a:${b}}|k=${a.${b}}|k='${a.${b}}'|k=${|k=${}|k=$x|k=a@b|k=a*b?%/
k=a,b|k=a,|k=,a|k=1,2.0,null|k=[1,2],[3]|k=choice(a,b)|k=choice(a)|k=choice()|k=range(1,10,3)|k=range(3)|k=range(0,1,0.25)|k=interval(0,1)
k=glob(*)|k=glob([a*,b],exclude=c)|k=tag(t,choice(1,2))|k=tag(1,2)|k=sort(3,1,2)|k=sort([b,a])|k=sort(3,1,2,reverse=true)|k=sort(1,a)
k=shuffle(1,2)|k=int(3.5)|k=int('3')|k=int(a)|k=int([1.5,"2"])|k=float(1)|k=str(1.0)|k=str(true)|k=str({a:1})|k=bool(0)|k=bool(no)
k=int(value=3)|k=int (3)|k=int(1,2)|k=int(choice(1.5,2.5))|k=nope(1)|k=int()|k=str(a|k=choice(value=1,2)|k=json_str({a:1})
a.b=1|a.0.b=1|a.00=1|0=1|a-b.c-d=1|$a.b=1|a$=1|a[0]=1|a.=1|.a=1|a..b=1|a =1|-a=1|--a=1|=1|a
+a=1|++a=1|+++a=1|+a|~a|~a=|~a=b|~a.b|~a/b|~a@b|~a@b=c|a/b=c|a/b/c=d|a/b@c.d=e|a@b=c|a@=1|@a=1|a/b.c=1|a.b/c=1|+a/b@_global_=c
'''.strip()


def plain(value: Any) -> Any:
    if isinstance(value, QuotedString):
        return value.text
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {str(plain(key)): plain(item) for key, item in value.items()} if isinstance(value, dict) else value


def disagreement(text: str) -> str:
    ours = parse_override(text).parsed
    try:
        theirs = PARSER.parse_override(text)
    except Exception as error:
        return "" if ours.problem is not None else f"Hydra refuses: {error}"
    if ours.problem is not None:
        return f"only klaudit refuses: {ours.problem}"
    if (PREFIX[ours.prefix], ours.key, ours.package) != (theirs.type, theirs.key_or_group, theirs.package):
        return f"{ours} is not {theirs}"
    if theirs.is_sweep_override():
        listed = plain(theirs._value.list) if isinstance(theirs._value, ChoiceSweep) else None
        if ours.alternatives is None or not (listed is None or same(list(ours.alternatives), listed)):
            return f"{ours} is not the sweep {theirs}"
        return "" if ours.is_simple_sweep == (theirs.value_type == ValueType.SIMPLE_CHOICE_SWEEP) else "simple?"
    if isinstance(ours.value, Unknown):
        return "" if "shuffle" in text else "unknown"
    return "" if ours.alternatives is None and same(ours.value, plain(theirs._value)) else f"{ours} is not {theirs}"


@pytest.mark.parametrize("text", OVERRIDES.replace("\n", "|").split("|"))
def test_read_as_hydra_does(text: str) -> None:
    assert disagreement(text) == ""


ATOM_WORDS = r"""
a b1 true null 1 -2 1e-3 .5 5. 1_0 ${x} ${oc.env:A,b} "q" 'q_r' "a\"b" 'x\\' [ [ ] ] { { } } , , , : = ( ) \, \\ / $ @ *
% + - _ . int( float( str( bool( choice( range( sort( é # k3+ low_var_kl value= inf NaN x-y 0x1 007"""
ATOMS = ATOM_WORDS.split()


@settings(max_examples=250, deadline=None)
@given(
    st.sampled_from(["k=", "a.b=", "+a=", "++a.b= ", "~a=", "a/b=", "a@b.c="]),
    st.lists(st.sampled_from([*ATOMS, " ", "  ", "\t", "\\ ", "|"]), max_size=7).map("".join),
)
def test_any_value_is_read_as_hydra_does(key: str, value: str) -> None:
    assert disagreement(key + value) == ""


def test_ranges_are_listed() -> None:
    assert parse_override("k=range(1,10,3)").parsed.alternatives == (1, 4, 7)
    assert parse_override("k=range(0,1,0.5)").parsed.alternatives == (0, 0.5)
    assert parse_override("k=range(10000000)").parsed.alternatives == ()


def test_what_users_stumble_over() -> None:
    assert parse_override("a.use_kl_loss=off").value == "off"
    assert parse_override("a.use_kl_loss=").value == ""
    assert parse_override("a.use_kl_loss=FALSE").value is False
    assert parse_override("a.coef=1e-3").value == 0.001
    sweep = parse_override("trainer.logger=console,wandb")
    assert sweep.value == Unknown(("sweep",), "console,wandb")
    assert sweep.parsed.is_simple_sweep


@pytest.mark.parametrize("text", ["[" * 10_000, "{a:" * 5_000, "int(" * 5_000, "9" * 10_000, "a," * 10_000 + "a"])
def test_hostile_values_end_quickly(text: str) -> None:
    parsed = parse_override("k=" + text).parsed
    assert parsed.problem is not None or parsed.alternatives is not None or parsed.value == "9" * 10_000


def piece(text: str | None, start: int, **more: Any) -> Piece:
    return Piece(
        text, Span("run.sh", start, start + len(text or "$X"), 1, start + 1, 1, start + 1 + len(text or "$X")), **more
    )


def word(*pieces: Piece) -> Word:
    here = [each.span for each in pieces if each.variable is None] or [pieces[0].span]
    span = Span("run.sh", here[0].start, here[-1].end, 1, here[0].start + 1, 1, here[-1].end + 1)
    return Word(pieces, span, span)


def test_a_word_in_one_piece() -> None:
    override = parse_override(word(piece("+a.b=k3", 10)))
    setting = override.setting("a.b", override.value)
    assert (setting.value, setting.origin, setting.source, setting.raw) == ("k3", "override", None, "k3")
    assert (setting.span.start, setting.span.end) == (10, 17)
    assert (setting.value_span.start, setting.value_span.end, setting.value_span.column) == (15, 17, 16)


def test_a_value_from_a_variable_points_at_the_assignment() -> None:
    assigned = Span("run.sh", 2, 4, 1, 3, 1, 5)
    override = parse_override(word(piece("a.b=", 10), Piece("k3", assigned, variable="X")))
    setting = override.setting("a.b", override.value)
    assert (setting.value, setting.origin, setting.source) == ("k3", "variable", assigned)


def test_an_unknown_value_hangs_on_its_variable() -> None:
    override = parse_override(word(piece("++a.b=x_", 10), piece(None, 18, hangs_on=("X",))))
    assert (override.prefix, override.key, override.value) == ("++", "a.b", Unknown(("X",), "x_${X}"))
    assert override.parsed.problem is None


def test_an_unknown_key_is_a_problem_that_hangs_on_its_variable() -> None:
    for unknown in (word(piece(None, 0, hangs_on=("ARGS",))), word(piece(None, 0, hangs_on=("K",)), piece("=1", 2))):
        parsed = parse_override(unknown).parsed
        assert parsed.problem is not None
        assert parsed.hangs_on


def test_group_candidates() -> None:
    assert parse_override("actor=x").may_be_group
    assert not parse_override("a.b=x").may_be_group
    assert parse_override("actor@a.b=x").is_group_only

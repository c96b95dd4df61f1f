"""Whatever the reader claims to know about a program is what Python computes when it runs the program."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klaudit.model import Unknown, Value
from klaudit.readers.document import ConfigObject
from klaudit.readers.python import read_python
from klaudit.readers.source import Source

NAMES = st.sampled_from(["a", "b", "c"])
TEXTS, LISTS, DICTS = st.sampled_from(["s", "t"]), st.sampled_from(["l", "m"]), st.sampled_from(["d", "e"])
KEYS = st.sampled_from(['"k"', '"q"', '"beta"'])
CLASS = ["class K:", "    v = 1", "    w = 0.5", "k = K()"]
START = [
    "a = 1",
    "b = 0.5",
    "c = True",
    's = "x"',
    't = "y=1"',
    "l = [1]",
    "m = []",
    'd = {"k": 1}',
    'e = {"beta": 0.1}',
]

constants = st.sampled_from(["0", "1", "-2", "0.5", "1e-3", "True", "False", "None", '"z"', "'k3'", '""'])
atoms = constants | NAMES | TEXTS


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/", "//", "%", "**"]), inner),
        st.builds("({} {} {})".format, inner, st.sampled_from(["==", "!=", "<", "is", "and", "or", "in"]), inner),
        st.builds("(not {})".format, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds('f"{{{}}}-{{{}}}"'.format, NAMES, TEXTS),
        st.builds('"{{}}/{{x}}".format({}, x={})'.format, NAMES, TEXTS),
        st.builds('("%s=%s" % ({}, {}))'.format, NAMES, TEXTS),
        st.builds("[{}, *{}]".format, inner, LISTS),
        st.builds('{{"n": {}, **{}}}'.format, inner, DICTS),
        st.builds("{}.get({}, {})".format, DICTS, KEYS, inner),
        st.builds("{}[{}]".format, DICTS, KEYS),
        st.builds("float({})".format, inner),
        st.builds("str({})".format, inner),
        st.builds('",".join([{}, {}])'.format, TEXTS, TEXTS),
        LISTS,
        DICTS,
    )


expressions = st.recursive(atoms, _larger, max_leaves=4)

simple = st.one_of(
    st.builds("{} = {}".format, NAMES, expressions),
    st.builds("{} = {}".format, TEXTS, st.sampled_from(['"p"', 'f"{a}"', "s + t", '"q" "r"'])),
    st.builds("{} += {}".format, NAMES, atoms),
    st.builds("{} += {}".format, TEXTS, st.sampled_from(['"+"', "t", 'f"{b}"'])),
    st.builds("{} = [{}]".format, LISTS, expressions),
    st.builds("{}.append({})".format, LISTS, expressions),
    st.builds("{} += [{}]".format, LISTS, atoms),
    st.builds("{}.extend({})".format, LISTS, LISTS),
    st.builds('{} = {{"k": {}}}'.format, DICTS, expressions),
    st.builds("{}[{}] = {}".format, DICTS, KEYS, expressions),
    st.builds("{}.update(beta={})".format, DICTS, expressions),
    st.builds("{}.setdefault({}, {})".format, DICTS, KEYS, atoms),
    st.builds("C(x={}, **{})".format, expressions, DICTS),
    st.builds("C(x={}, y={})".format, expressions, LISTS),
    st.builds("{}, {} = {}, {}".format, NAMES, TEXTS, atoms, TEXTS),
    st.builds("{}, {} = {}".format, NAMES, NAMES, LISTS),
    st.builds("{} = {}".format, LISTS, LISTS),
    st.builds("{} = {}".format, DICTS, st.sampled_from(["d", "dict(e, k=2)", "d.copy()", "{**e}", "d | e"])),
    st.builds("{}.{}".format, LISTS, st.sampled_from(["pop()", "clear()", "reverse()", "insert(0, a)", "sort()"])),
    st.builds(
        "{}.{}".format, DICTS, st.sampled_from(['pop("k")', 'pop("k", None)', "clear()", "update(e)", "popitem()"])
    ),
    st.builds(
        "{}".format,
        st.sampled_from(['del d["k"]', "l[0] = a", "d[s] = a", "d |= e", 'e["n"] = {"k": a}', 'e["n"]["k"] = b']),
    ),
    st.builds(
        "{}".format,
        st.sampled_from(["k.v = a", "K.v = a", "k = K()", "C(x=k.v, y=K.v)", "k = K(); k.w = b", "C(x=k.w)"]),
    ),
    st.builds(
        "{}".format, st.sampled_from(["a = (b := c)", "del a", "a = l[0]", "a = e['n']['k']", "a = [l, d]", "C(x=a)"])
    ),
)


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _compound(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
    return st.one_of(
        st.builds(lambda x, y: x + y, inner, inner),
        st.builds(lambda t, x, y: [f"if {t}:", *_indented(x), "else:", *_indented(y)], expressions, inner, inner),
        st.builds(lambda t, x: [f"if {t}:", *_indented(x)], expressions, inner),
        st.builds(lambda n, x: [f"for {n} in [1, 2]:", *_indented(x)], NAMES, inner),
        st.builds(lambda x, y: ["try:", *_indented(x), "except Exception:", *_indented(y)], inner, inner),
        st.builds(lambda x, y: ["def f():", *_indented(x), *y, "f()"], inner, inner),
        st.builds(lambda g, x: ["def g():", f"    global {g}", *_indented(x), "g()"], NAMES, inner),
        st.builds(lambda x: ["def h(a, b=2):", *_indented(x), "h(3)"], inner),
        st.builds(lambda x: ["while True:", *_indented(x), "    break"], inner),
        st.builds(lambda x: ["C(x=[a for a in [1, 2]], y=(lambda b: b)(3))", *x], inner),
    )


programs = st.recursive(simple.map(lambda line: [line]), _compound, max_leaves=12)


def run(code: str) -> dict[int, list[dict[str, Any]]]:
    """The keywords of every call of C, by line, as a real run has them."""
    seen: dict[int, list[dict[str, Any]]] = {}

    def recorder(**given: Any) -> None:
        import copy

        seen.setdefault(sys._getframe(1).f_lineno, []).append(copy.deepcopy(given))

    with contextlib.suppress(Exception):  # a program that fails half-way still ran up to there
        exec(compile(code, "<program>", "exec"), {"C": recorder, "__name__": "__main__"})
    return seen


def is_known(value: Value) -> bool:
    if isinstance(value, list):
        return all(is_known(item) for item in value)
    if isinstance(value, dict):
        return all(is_known(item) for item in value.values())
    return not isinstance(value, Unknown)


def claims(made: ConfigObject) -> dict[str, Value]:
    return {setting.name: setting.value for setting in made.settings if "." not in setting.name}


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs)
def test_known_values_are_those_of_a_run(lines: list[str]) -> None:
    code = "\n".join([*START, *CLASS, *lines, "C(x=(a, b, c), y=[s, t, l], **e)", "C(**d)", ""])
    seen = run(code)
    document = read_python(Source("program.py", code.encode()))
    objects = [made for made in document.objects if made.kind == "call" and made.symbol == "C"]
    for made in objects:
        for given_there in seen.get(made.span.line, []):
            for name, value in claims(made).items():
                if is_known(value):
                    real = given_there.get(name, "not given")
                    real = list(real) if isinstance(real, tuple) else real
                    assert (type(real), real) == (type(value), value), f"{name} on line {made.span.line} of\n{code}"
            if not made.open:
                assert set(given_there) <= set(claims(made)), f"line {made.span.line} of\n{code}"


def test_straight_programs_are_known_throughout() -> None:
    """The property above would hold for a reader that knows nothing."""
    code = "\n".join([*START, 'd["q"] = a + b', "l.append(2)", 's += f"{a}"', "C(x=l, y=s, **d)", "C(z=c and t)", ""])
    objects = [
        made
        for made in read_python(Source("program.py", code.encode())).objects
        if made.kind == "call" and made.symbol == "C"
    ]
    assert claims(objects[0]) == {"x": [1, 2], "y": "x1", "k": 1, "q": 1.5}
    assert claims(objects[1]) == {"z": "y=1"}

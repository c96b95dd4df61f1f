"""What expressions come to, what unknown ones hang on, and where values were written."""

from __future__ import annotations

import pytest
from python_reading import call, hangs_on, read, spelled, value, values

from klaudit.model import Unknown
from klaudit.readers.python import read_python
from klaudit.readers.source import Source


@pytest.mark.parametrize(
    ("expression", "known"),
    [
        ("-0.04", -0.04),
        ("+1", 1),
        ("2 * 5e-4", 1e-3),
        ("1 / 0", None),
        ("10 ** 400", None),
        ("(-8) ** 0.5", None),
        ("'x' * 10 ** 9", None),
        ("not True", False),
        ("1 if 2 > 1 else 0", 1),
        ("None or 0.1", 0.1),
        ("'k3' in ('k1', 'k3')", True),
        ("'a' 'b'", "ab"),
        ("f'{1}{2.50:.1f}{True}'", "12.5True"),
        ("f'{0.1!r}'", None),
        ("'{}={}'.format('a', 1)", "a=1"),
        ("'{a:.2f}'.format(a=0.125)", "0.12"),
        ("'{0.__class__}'.format(1)", None),
        ("'%s=%.2f%%' % ('a', 0.5)", "a=0.50%"),
        ("'%(a)s' % {'a': 1}", "1"),
        ("','.join(['a', 'b'])", "a,b"),
        ("' a '.strip()", "a"),
        ("'a b'.split()", ["a", "b"]),
        ("'a=b'.split('=')[1]", "b"),
        ("'K3'.lower()", "k3"),
        ("float('1e-3')", 0.001),
        ("int('7')", 7),
        ("str(0.1)", "0.1"),
        ("bool('')", False),
        ("float('x')", None),
        ("int('9' * 5000)", None),
        ("[1, *[2, 3]]", [1, 2, 3]),
        ("(1, 2)[-1]", 2),
        ("[1, 2][5]", None),
        ("{'a': {'b': 1}}['a']['b']", 1),
        ("{'a': 1}.get('b', 2)", 2),
        ("{'a': 1}.get('b')", "None"),
        ("dict({'a': 1}, b=2)", {"a": 1, "b": 2}),
        ("dict([('a', 1)])", None),
        ("{**{'a': 1}, 'b': 2} | {'a': 3}", {"a": 3, "b": 2}),
        ("list(('a',))", ["a"]),
        ("b'bytes'", None),
        ("1j", None),
        ("...", None),
        ("lambda: 1", None),
        ("[x for x in [1]]", None),
        ("(y := 3)", 3),
    ],
)
def test_expressions(expression: str, known: object) -> None:
    found = value(expression)
    if known is None:
        assert isinstance(found, Unknown)
    else:
        assert found == (None if known == "None" else known)


@pytest.mark.parametrize(
    ("before", "known"),
    [
        ("x = 1", 1),
        ("x = 1\nx = 2", 2),
        ("x: float = 0.5", 0.5),
        ("x, y = 1, 2", 1),
        ("x = y = 3", 3),
        ("if DEBUG:\n    x = 1\nelse:\n    x = 2", None),
        ("DEBUG = False\nif DEBUG:\n    x = 1\nelse:\n    x = 2", 2),
        ("x = 1\nif other():\n    x = 2", None),
        ("x = 1\nif other():\n    x = 2\n    raise ValueError", 1),
        ("for x in [1, 2]:\n    pass", None),
        ("x = 1\nfor i in y:\n    x = 2", None),
        ("try:\n    x = 1\nexcept Exception:\n    x = 2", None),
        ("try:\n    x = 1\nexcept Exception:\n    raise", 1),
        ("with a() as b:\n    x = 1", 1),
        ("with a() as x:\n    pass", None),
        ("if __name__ == '__main__':\n    x = 1", 1),
        ("import os\nx = os.environ.get('BETA', '0.04')", "0.04"),
        ("import os\nx = float(os.getenv('BETA', 0.1))", 0.1),
        ("import os\nos.environ['BETA'] = '1'\nx = os.environ.get('BETA', '0.04')", None),
        ("def f():\n    global x\n    x = 2\nx = 1", None),
        ("x = 1\ndel x", None),
        ("x = [1]\nx.append(2)\nx += [3]\nx.insert(0, 0)", [0, 1, 2, 3]),
        ("x = 'a'\nx += 'b'", "ab"),
        ("x = {'a': 1}\nx['b'] = 2\nx.update(c=3)\nx.setdefault('a', 9)\ndel x['b']", {"a": 1, "c": 3}),
        ("x = {}\nx['a'] = {}\nx['a']['b'] = 1", {"a": {"b": 1}}),
        ("x = {'a': 1}\nx[key()] = 2", None),
        ("x = [1]\ny = x\ny.append(2)", None),
        ("class A:\n    b = 0.1\nx = A.b", 0.1),
        ("class A:\n    b = 0.1\nclass B(A):\n    pass\nx = B().b", 0.1),
        ("class A:\n    b = 0.1\nA.b = 0.2\nx = A.b", None),
        ("class K(Enum):\n    K3 = 'k3'\nx = K.K3", None),
        ("class K(Enum):\n    K3 = 'k3'\nx = K.K3.value", "k3"),
        ("c = Settings(beta=0.1)\nx = c.beta", 0.1),
        ("c = Settings(beta=0.1)\nc.beta = 0.2\nx = c.beta", 0.2),
        ("from types import SimpleNamespace\nc = SimpleNamespace(beta=0.1)\nx = c.beta", 0.1),
        ("from copy import deepcopy\nx = deepcopy([1])", [1]),
        ("import os\nx = os.path.join('a', 'b')", "a/b"),
        ("import textwrap\nx = textwrap.dedent('''\\\n  a\n    b\n''')", "a\n  b\n"),
        ("match y:\n    case 1:\n        x = 1\n    case _:\n        x = 2", None),
    ],
)
def test_names(before: str, known: object) -> None:
    found = value("x", before)
    if known is None:
        assert isinstance(found, Unknown), found
    else:
        assert found == known


def test_functions_see_what_the_module_binds_once() -> None:
    code = """
        BETA = 0.04
        LATER = 1
        def train(eps=0.2):
            local = 3
            Config(a=BETA, b=LATER, c=eps, d=local, e=missing)
        LATER = 2
    """
    found = values(call(code, "Config"))
    assert (found["a"], found["d"]) == (0.04, 3)
    assert [hangs_on(found[name]) for name in "bce"] == [("LATER",), ("eps",), ("missing",)]


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("beta", ("beta",)),
        ("cfg.actor.beta", ("cfg.actor.beta",)),
        ("cfg['actor'].beta * 2 + gamma", ("cfg.actor.beta", "gamma")),
        ("pick(beta)", ("pick()", "beta")),
        ("os.environ['BETA']", ("os.environ.BETA",)),
        ("0.1 if args.debug else 0.2", ("args.debug",)),
        ("f'{a}-{b.c}'", ("a", "b.c")),
        ("[1, beta]", ()),
    ],
)
def test_what_unknown_values_hang_on(expression: str, names: tuple[str, ...]) -> None:
    found = value(expression)
    if isinstance(found, list):
        assert found == [1, Unknown(("beta",))]
    else:
        assert hangs_on(found) == names


def test_imported_names_are_named_in_full() -> None:
    assert hangs_on(value("t.float16", "import torch as t")) == ("torch.float16",)


def test_a_value_from_elsewhere_says_where_it_was_written() -> None:
    code = """
        BETA = 0.04
        common = dict(beta=BETA, lr=1e-6)
        Config(**common, eps=BETA)
    """
    beta, lr, eps = call(code, "Config").settings
    assert (spelled(code, beta.span), spelled(code, beta.value_span)) == ("beta=BETA", "BETA")
    assert beta.source is not None and spelled(code, beta.source) == "0.04"
    assert spelled(code, lr.span) == "lr=1e-6" and lr.source is None
    assert spelled(code, eps.span) == "eps=BETA"


def test_an_option_is_unknown_but_names_its_default() -> None:
    code = """
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--beta", type=float, default=0.04)
        args = parser.parse_args()
        Config(beta=args.beta, other=args.other)
    """
    beta, other = call(code, "Config").settings
    assert beta.value == Unknown(("--beta (default 0.04)",), "args.beta")
    assert beta.source is not None and spelled(code, beta.source) == "0.04"
    assert hangs_on(other.value) == ("args.other",)


def test_an_option_is_recognised_in_a_function_that_gets_the_arguments() -> None:
    code = """
        def main(args):
            Config(beta=args.beta)
        p = ArgumentParser()
        p.add_argument("--beta", default="x")
        main(p.parse_args())
    """
    assert hangs_on(call(code, "Config").settings[0].value) == ("--beta (default 'x')",)


def test_unknown_keys_may_override_known_ones() -> None:
    found = value("{'a': 1, **extra}")
    assert hangs_on(found) == ("extra",)
    made = call("Config(a=1, **extra)", "Config")  # a key given twice would be an error
    assert values(made) == {"a": 1} and made.open == ("extra",)


def test_deep_and_wide_expressions_are_bounded() -> None:
    nested = "[" * 80 + "1" + "]" * 80
    wide = "{" + ", ".join(f"'k{i}': {i}" for i in range(1_000)) + "}"
    chain = "\n".join(f"x{i + 1} = x{i}" for i in range(1_000))
    tests = "\n".join(f"if y{i}:\n    y{i + 1} = 1" for i in range(1_000))
    document = read(f"x0 = 1\n{chain}\ny0 = 1\n{tests}\nConfig(a={nested}, b=x1000, c=y1000, d={wide})\n")
    assert len(document.objects) == 2


def test_what_no_hand_wrote_is_cut_and_said() -> None:
    lines = "".join(f"d['k{i}'] = {i}\nConfig(**d)\n" for i in range(600))
    document = read_python(Source("x.py", f"d = {{}}\n{lines}".encode()))
    assert sum(len(made.settings) for made in document.objects) < 60_000
    assert [problem.message for problem in document.problems] == ["more than 50,000 settings: the rest was left out"]

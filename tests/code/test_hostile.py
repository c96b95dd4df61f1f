"""Files that are huge, nested without end, broken or built to blow up: an answer in time, or a clear refusal."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from klaudit.code.analyse import analyse
from klaudit.code.analyses import Analyses
from klaudit.code.judge import findings
from klaudit.code.result import CodeResult
from klaudit.code.scan import MAX_PROBLEMS, read_formulas
from klaudit.configuration import Options
from klaudit.engine import scan
from klaudit.readers.source import Source, UnreadableError
from tests.code.snippets import rules_of

GOOD = """
def loss_fn(logp, old_logp, ref_logp, adv, beta):
    d = logp - ref_logp
    return (-(logp - old_logp).exp() * adv + beta * ((-d).exp() - 1 + d)).mean()
"""
SECONDS = 4.0  # the longest that any of these may take on a busy machine; a hang takes minutes


def _timed(data: bytes) -> CodeResult:
    start = time.process_time()
    result = analyse(Source("trainer.py", data))
    findings(result)
    assert time.process_time() - start < SECONDS
    return result


def _rules(data: bytes) -> list[str]:
    return [finding.rule for finding in findings(_timed(data)) if finding.severity != "note"]


BROKEN = {
    "not Python": b"logp ref_logp = loss =",
    "a null byte": GOOD.encode() + b"\0",
    "invalid UTF-8": b"# coding: utf-8\nlogp = '\xff'\n" + GOOD.encode(),
    "an unknown encoding": "# -*- coding: no-such-thing -*-\n# é\n".encode() + GOOD.encode(),
    "Python 2": b"print 'logp', ref_logp\n" + GOOD.encode(),
    "unfinished": GOOD.encode() + b"def f(logp, ref_logp:\n",
    "parentheses": b"logp_ref = " + b"(" * 5_000 + b"1" + b")" * 5_000,
    "brackets": b"logp_ref = " + b"[" * 100_000,
    "indentation": b"\n".join(b" " * at + b"if logp_ref:" for at in range(150)),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_read_is_refused(name: str) -> None:
    with pytest.raises(UnreadableError):
        analyse(Source("trainer.py", BROKEN[name]), prefilter=False)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8-sig", "cp1252"])
def test_other_encodings_are_read(encoding: str) -> None:
    declared = "" if encoding == "utf-8-sig" else f"# -*- coding: {encoding} -*-\n"
    data = (declared + "name = 'é'\n" + GOOD).encode(encoding)
    assert _rules(data) == ["KLA101"]


def test_line_endings_and_marks_do_not_move_the_place() -> None:
    for text in (
        GOOD,
        GOOD.replace("\n", "\r\n"),
        "\ufeff" + GOOD,
        "x = '\u2028 é'\n" + GOOD,
        "def f():\n    '''\n\f\n    '''\n" + GOOD,
    ):
        data = text.encode()
        (formula,) = _timed(data).formulas
        assert data[formula.span.start : formula.span.end] == b"(-d).exp() - 1 + d"
        assert formula.text == "(-d).exp() - 1 + d"


EXPENSIVE: dict[str, str] = {
    "a long sum": "def loss_fn(logp, ref_logp, beta):\n    return beta * (" + " + ".join(["(logp - ref_logp)"] * 900) + ").mean()\n",
    "a long product": "def loss_fn(logp, ref_logp):\n    return " + " * ".join(["(logp - ref_logp)"] * 900) + "\n",
    "nested calls": "def loss_fn(logp, ref_logp):\n    return " + "abs(" * 90 + "logp - ref_logp" + ")" * 90 + "\n",
    "a chain of methods": "def loss_fn(logp, ref_logp):\n    return (logp - ref_logp)" + ".exp()" * 900 + "\n",
    "doubling": "def loss_fn(logp, ref_logp, beta):\n    x = logp - ref_logp\n"
    + "".join("    x = x * x + x\n" for _ in range(300))
    + "    return beta * x.mean()\n",
    "doubling lists": "def loss_fn(logp, ref_logp, beta):\n    x = [logp - ref_logp]\n"
    + "".join("    x = x + x\n" for _ in range(60))
    + "    return beta * sum(x)\n",
    "doubling text": "def loss_fn(logp, ref_logp, kind):\n    s = 'k'\n"
    + "".join("    s = s + s\n" for _ in range(60))
    + "    return (logp - ref_logp) if kind == s else logp * 0\n",
    "big numbers": "def loss_fn(logp, ref_logp):\n    return (logp - ref_logp) * 10 ** 10 ** 10 + (-1) ** 0.5 + 1 / 0 + 9 ** 99999\n",
    "long digits": "def loss_fn(logp, ref_logp):\n    return (logp - ref_logp) * " + "9" * 4000 + "\n",
    "many branches": "def loss_fn(logp, ref_logp, beta, kind):\n    kl = logp - ref_logp\n"
    + "".join(f"    if kind == 'k{at}':\n        kl = kl * {at + 2}\n" for at in range(400))
    + "    return beta * kl.mean()\n",
    "independent switches": "def loss_fn(logp, ref_logp, beta, cfg):\n    kl = logp - ref_logp\n"
    + "".join(f"    if cfg.switch_{at}:\n        kl = kl.exp() - kl\n" for at in range(60))
    + "    return beta * kl.mean()\n",
    "tests of what tests have made": "def loss_fn(logp, ref_logp, batch, cfg):\n    found = make(batch)\n"
    + "".join(f"    if not found:\n        found = make(batch['{at}'] if '{at}' in batch else None)\n" for at in range(60))
    + "    return cfg.beta * (logp - ref_logp).mean() if found else 0\n",
    "one or another, again and again": "def loss_fn(logp, ref_logp, cfg):\n    found = cfg.first\n"
    + "".join(f"    found = found or cfg.other_{at}\n" for at in range(60))
    + "    return cfg.beta * (logp - ref_logp).mean() if found else 0\n",
    "comparisons of what comparisons have made": "def loss_fn(logp, ref_logp, cfg):\n    kind = cfg.kind\n"
    + "".join(f"    if kind == 'a{at}':\n        kind = cfg.kind_{at}\n" for at in range(60))
    + "    return cfg.beta * (logp - ref_logp).mean() if kind == 'k1' else 0\n",
    "a tower of else": "def loss_fn(logp, ref_logp, beta, cfg):\n    "
    + "    ".join(f"{'el' if at else ''}if cfg.kind == {at}:\n        kl = (logp - ref_logp) * {at}\n" for at in range(500))
    + "    return beta * kl.mean()\n",
    "nested ifs": "def loss_fn(logp, ref_logp, cfg):\n    kl = logp - ref_logp\n"
    + "".join("    " * (at + 1) + f"if cfg.a{at}:\n" for at in range(60))
    + "    " * 62
    + "kl = kl * 2\n    return kl.mean()\n",
    "calling itself": "def kl_loss(logp, ref_logp, n):\n    return kl_loss(logp - 0.1, ref_logp, n - 1) + (logp - ref_logp)\n",
    "calling each other": "def kl_a(logp, ref_logp):\n    return kl_b(logp, ref_logp)\ndef kl_b(logp, ref_logp):\n    return kl_a(ref_logp, logp)\n"
    "def loss_fn(logp, ref_logp):\n    return kl_a(logp, ref_logp).mean()\n",
    "a tree of calls": "".join(
        f"def kl_{at}(logp, ref_logp):\n    return kl_{at + 1}(logp, ref_logp) + kl_{at + 1}(ref_logp, logp) + kl_{at + 1}(logp, logp)\n"
        for at in range(40)
    )
    + "def kl_40(logp, ref_logp):\n    return logp - ref_logp\n"
    + "def loss_fn(logp, ref_logp):\n    return kl_0(logp, ref_logp).mean()\n",
    "a lambda of lambdas": "def loss_fn(logp, ref_logp):\n    f = lambda g: g(g)\n    return f(f) * (logp - ref_logp)\n",
    "a class that is its own base": "class A(A):\n    def loss(self, logp, ref_logp):\n        return self.kl(logp, ref_logp)\n",
    "bases in a circle": "class A(B):\n    pass\nclass B(A):\n    def loss(self, logp, ref_logp):\n        return self.kl_x(logp, ref_logp)\n",
    "an attribute that reads itself": "class A:\n    def __init__(self):\n        self.beta = self.beta\n        self.kl = self.kl\n"
    "    def loss(self, logp, ref_logp):\n        return self.beta * self.kl(logp, ref_logp)\n",
    "a module that imports itself": "from trainer import *\nfrom trainer import kl\nfrom . import trainer\n" + GOOD,
    "a list in itself": "def loss_fn(logp, ref_logp):\n    x = [logp - ref_logp]\n    x.append(x)\n    d = {'a': x}\n    d['d'] = d\n"
    "    return sum(x[1]) + d['d']['d']['a']\n",
    "comprehensions": "def loss_fn(logp, ref_logp):\n    return " + "[" * 40 + "logp - ref_logp" + " for x in y]" * 40 + "\n",
    "subscripts": "def loss_fn(logp, ref_logp):\n    return (logp - ref_logp)" + "[0]" * 900 + "\n",
    "format strings": "def loss_fn(logp, ref_logp):\n    x = f'{logp - ref_logp:{logp}}'\n    return x\n",
    "walrus and star": "def loss_fn(*logp, **ref_logp):\n    (a := logp)\n    [*b], c = *logp, ref_logp\n    return a[0] - ref_logp['ref_logp']\n",
    "deleted and global": "def loss_fn(logp, ref_logp):\n    global kl\n    kl = logp - ref_logp\n    del kl, logp\n    return kl + logp\n",
    "odd targets": "def loss_fn(logp, ref_logp):\n    (a, [b, *c]), d.e, f[0:1], (g) = logp, ref_logp, a - b, [[1]]\n    return a - ref_logp\n",
    "async and generators": "async def loss_fn(logp, ref_logp):\n    async with x as y, z:\n        async for i in logp:\n"
    "            yield await (i - ref_logp)\n    x = yield\n",
}  # fmt: skip


@pytest.mark.parametrize("name", EXPENSIVE)
def test_what_could_blow_up_does_not(name: str) -> None:
    _timed(EXPENSIVE[name].encode())


@pytest.mark.parametrize("name", EXPENSIVE)
def test_a_neighbour_is_still_read(name: str) -> None:
    """What is too much in one function leaves the others of the file as they are."""
    code = EXPENSIVE[name] + GOOD.replace("loss_fn", "other_loss")
    assert "KLA101" in _rules(code.encode())


def test_a_huge_file() -> None:
    filler = "\n".join(
        f"def f_{at}(x, y):\n    return [x + y, {{'{at}': x}}, x if y else {at}]\n" for at in range(20_000)
    )
    assert _rules((filler + GOOD).encode()) == ["KLA101"]


def test_many_functions_with_formulas() -> None:
    code = "".join(GOOD.replace("loss_fn", f"loss_{at}") for at in range(150))
    assert _rules(code.encode()) == ["KLA101"] * 150


NEWER = {
    "type parameters": "def first[T](x: list[T]) -> T:\n    return x[0]\n\nclass Box[T]:\n    pass\n\ntype Pair = tuple[int, int]\n",
    "quotes in format strings": 'def show(d):\n    return f"{d["logp"]} and {", ".join(d["ref"])}"\n',
    "match": "def run(x):\n    match x:\n        case {'a': [1, *rest], **other} if rest:\n            return other\n        case Point(x=0) | None:\n            pass\n",
    "parenthesised with": "def run():\n    with (open('a') as a, open('b') as b):\n        pass\n",
}  # fmt: skip


if sys.version_info >= (3, 11):
    NEWER["except groups"] = "def run():\n    try:\n        pass\n    except* ValueError:\n        pass\n"


@pytest.mark.parametrize("name", NEWER)
def test_grammar_of_any_version(name: str) -> None:
    assert rules_of(NEWER[name] + GOOD) == ["KLA101"]


def test_thousands_of_functions_that_call_those_that_matter() -> None:
    given = "def loss(logp, ref_logp, c):\n    return c * (logp - ref_logp)\n"
    callers = "".join(f"def g{at}(x):\n    return loss(x, x, x)\n" for at in range(5_000))
    result = _timed((given + callers).encode())
    assert any("the rest was not analysed" in problem.message for problem in result.problems)
    assert [formula.symbol for formula in result.formulas] == ["loss"]


def test_thousands_of_functions_that_call_each_other() -> None:
    count = 5_000
    functions = "".join(
        f"def f{at}(logp, ref_logp):\n    kl = f{(at + 1) % count}(logp, ref_logp)\n    return kl + logp - ref_logp\n"
        for at in range(count)
    )
    result = _timed(functions.encode())
    assert any("the rest was not analysed" in problem.message for problem in result.problems)


def test_helpers_that_call_each_other_by_settings() -> None:
    """Every setting doubles the ways: hundreds of formulas, each set against each other."""
    count = 30
    helpers = "".join(
        f"def kl_{at}(logp, ref_logp, flags):\n    kl = logp - ref_logp\n"
        f"    if flags.a{at}:\n        kl = kl_{(at + 1) % count}(logp, ref_logp, flags)\n"
        f"    if flags.b{at}:\n        kl = kl_{(at + 7) % count}(logp, ref_logp, flags)\n    return kl\n"
        for at in range(count)
    )
    result = _timed(helpers.encode())
    assert any("was not analysed: more than" in problem.message for problem in result.problems)
    found = read_formulas(Source("helpers.py", helpers.encode()), Analyses(lambda path: None))
    assert len(found.problems) == MAX_PROBLEMS + 1


def test_what_was_too_much_is_told_where_nothing_else_is(tmp_path: Path) -> None:
    nested = "    kl = kl + logp - ref_logp\n" * 20_000
    (tmp_path / "a.py").write_text(f"def loss(logp, ref_logp):\n    kl = logp - ref_logp\n{nested}    return kl\n")
    report = scan([str(tmp_path)], Options())
    assert [finding.rule for finding in report.findings] == ["KLA003"]
    assert "loss was not analysed: more than" in report.findings[0].message

"""The dual-number evaluator against torch autograd, on random expressions over the whitelist."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from klaudit.code.evaluation.dual import NotEvaluableError, Tokens, Vocabulary, evaluate
from klaudit.code.graph import Graph, Op
from klaudit.code.roles import OLD, POLICY, REFERENCE
from tests.code.snippets import result_of

torch = pytest.importorskip("torch", reason="the differential test needs torch")

D = (-1.7, -0.4, 0.3, 1.1)
LEAVES = ("new_logp", "old_logp", "ref_logp", "0.5", "2.0", "-1.25")


def _calls(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    unary = st.sampled_from(
        [
            "torch.exp({})", "({}).exp()", "torch.expm1({})", "({}).square()", "torch.square({})", "({}) ** 2", "({}).pow(2)", "({}).abs()",
            "torch.abs({})", "-({})", "({}).neg()", "({}).detach()", "torch.clamp({}, min=-1.5, max=2)", "({}).clamp(-1, 1)",
            "torch.clip({}, -2.0, 0.75)", "({}).clamp_min(-0.5)", "({}).clamp_max(0.5)", "torch.sigmoid({})", "F.logsigmoid({})",
            "F.softplus({})", "torch.tanh({})", "({}).float()", "({}).double()", "torch.log1p(torch.exp({}))", "({}) / 3", "torch.relu({})",
            "torch.cosh(({}).clamp(-2, 2))", "(({}) ** 2 + 0.1).log()", "(({}) ** 2 + 0.1).sqrt()", "({}).sign()", "torch.reciprocal(({}) ** 2 + 1)",
        ]
    )  # fmt: skip
    binary = st.sampled_from(
        [
            "({}) + ({})", "({}) - ({})", "({}) * ({})", "torch.sub({}, {})", "({}).mul({})", "torch.maximum({}, {})",
            "torch.minimum({}, {})",
            "torch.where(new_logp - ref_logp > ({}), {}, -1.0 * new_logp)", "({}).add({}, alpha=0.5)", "torch.lerp({}, {}, 0.25)",
            "F.kl_div({}, {}, reduction='none', log_target=True)", "F.smooth_l1_loss({}, {}, reduction='none')",
            "F.smooth_l1_loss({}, {}, reduction='none', beta=0.5)", "F.huber_loss({}, {}, reduction='none', delta=0.75)",
            "torch.einsum('i,i->i', new_logp * ({}), {})",
        ]
    )  # fmt: skip
    return st.one_of(
        st.builds(lambda form, a: form.format(a), unary, inner),
        st.builds(lambda form, a, b: form.format(a, b), binary, inner, inner),
    )


def _tensor(text: str) -> str:
    """Numbers as tensors: methods are called on them."""
    for number in ("0.5", "2.0", "-1.25"):
        if text == number:
            return f"torch.full_like(ref_logp, {number})"
    return text


EXPRESSIONS = st.recursive(st.sampled_from(LEAVES).map(_tensor), _calls, max_leaves=7)


def _by_torch(expression: str) -> tuple[list[float], list[float]]:
    new = torch.full((len(D),), -1.7, dtype=torch.float64, requires_grad=True)
    values = {
        "torch": torch,
        "F": torch.nn.functional,
        "new_logp": new,
        "old_logp": torch.full((len(D),), -2.0, dtype=torch.float64),
        "ref_logp": torch.tensor([-1.7 - d for d in D], dtype=torch.float64),
    }
    # the expression is this test's own: nothing that is scanned is ever evaluated
    value = eval(expression.replace(".float()", ".double()"), values) + 0.0 * new
    (slope,) = torch.autograd.grad(value.sum(), new)
    return value.tolist(), slope.tolist()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(EXPRESSIONS)
def test_value_and_slope_are_those_of_autograd(expression: str) -> None:
    node = _node(expression)
    points = Tokens((-1.7,) * len(D), D, (0.3,) * len(D))
    ours = evaluate(node, points, {})
    values, slopes = _by_torch(expression)
    for got, want in zip(ours.values, values, strict=True):
        assert got == pytest.approx(want, rel=1e-9, abs=1e-9) or (_is_lost(got) and _is_lost(want))
    for got, want, value in zip(ours.slopes, slopes, values, strict=True):
        assert _is_lost(want) or _is_lost(value) or got == pytest.approx(want, rel=1e-7, abs=1e-9)


def _is_lost(value: float) -> bool:
    return not math.isfinite(value) or abs(value) > 1e200


def _node(expression: str):  # type: ignore[no-untyped-def]
    """The graph of an expression, read by the interpreter as any scanned code is."""
    import ast

    from klaudit.code.interpreter import Interpreter
    from klaudit.code.modules import Program
    from klaudit.readers.source import Source

    text = (
        "import torch\nimport torch.nn.functional as F\n\ndef value(new_logp, old_logp, ref_logp):\n"
        f"    return {expression}\n"
    )
    program = Program(Source("expression.py", text.encode()), lambda path: None)
    interpreter = Interpreter(program)
    function = program.main.functions["value"]
    frame = interpreter.run_root(function)
    assert isinstance(function.syntax, ast.FunctionDef)
    return interpreter.as_node(frame.returns[0][1])


def test_the_vocabulary_is_summed_as_autograd_does() -> None:
    policy, reference, direction = (0.3, -1.1, 0.8, 0.0), (-0.4, 0.5, 0.2, 0.9), (0.7, -0.2, 0.4, 1.0)
    graph = Graph()
    logits = graph.atom(POLICY, "logits", "", vocabulary=True)
    other = graph.atom(REFERENCE, "ref_logits", "", vocabulary=True)
    log_p, log_q = graph.make(Op.LOGSOFTMAX, (logits,)), graph.make(Op.LOGSOFTMAX, (other,))
    terms = graph.make(Op.MUL, (graph.make(Op.SOFTMAX, (logits,)), graph.difference(log_p, log_q)))
    ours = evaluate(graph.make(Op.REDUCE, (terms,), text="sum", axis=-1), Vocabulary(policy, reference, direction), {})

    leaf = torch.tensor(policy, dtype=torch.float64, requires_grad=True)
    against = torch.log_softmax(torch.tensor(reference, dtype=torch.float64), -1)
    value = (torch.softmax(leaf, -1) * (torch.log_softmax(leaf, -1) - against)).sum(-1)
    value.backward()
    assert ours.values[0] == pytest.approx(float(value), rel=1e-12)
    assert ours.slopes[0] == pytest.approx(float(leaf.grad @ torch.tensor(direction, dtype=torch.float64)), rel=1e-12)


def test_what_has_no_value_says_so() -> None:
    graph = Graph()
    unknown = graph.make(Op.OPAQUE, (graph.atom(POLICY, "lp", ""), graph.atom(OLD, "old", "")), text="mystery")
    with pytest.raises(NotEvaluableError, match="mystery"):
        evaluate(unknown, Tokens.along(D), {})


def test_an_expression_in_a_file_is_the_same_graph() -> None:
    code = """
    import torch
    def loss_fn(new_logp, ref_logp, adv):
        return -adv * new_logp + 0.1 * (torch.exp(ref_logp - new_logp) - (ref_logp - new_logp) - 1)
    """
    (formula,) = [formula for formula in result_of(code).formulas if formula.placement == "loss"]
    assert formula.what.estimator == "k3"

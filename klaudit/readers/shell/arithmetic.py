"""Shell arithmetic: 64-bit integers, C's operators, variables by name."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Protocol

from klaudit.patterns import rare

_MAX_DEPTH = 40  # parentheses, and variables whose values are expressions
_MAX_POWER = 1_000

_TOKEN = rare(
    r"\s*(?:(0[xX][0-9a-fA-F]+|\d+#[\w@]+|\d+)|([A-Za-z_]\w*)|(<<=|>>=|\*\*|\+\+|--|&&|\|\||<<|>>|<=|>=|==|!=|[-+*/%&|^]=|[-+*/%<>!~&|^?:=(),\[\]]))",
    re.ASCII,
)
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<=", ">=", "<", ">"),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_PRECEDENCE = {sign: level for level, signs in enumerate(_LEVELS) for sign in signs}


class BadExpressionError(ValueError):
    """An expression that bash would reject, or one too large to bother with."""


class Variables(Protocol):
    """What an expression reads and writes.  `subscript` is the text between brackets."""

    def number_text(self, name: str, subscript: str | None) -> str:
        """The variable's value, empty where it is unset."""

    def assign_number(self, name: str, subscript: str | None, value: int) -> None: ...


def evaluate(expression: str, variables: Variables) -> int:
    """The value of an expression whose `$`-expansions are already done.  Raises BadExpressionError."""
    return _Evaluation(variables).run(expression, 0)


def _wrap(value: int) -> int:
    value &= 0xFFFF_FFFF_FFFF_FFFF
    return value - (1 << 64) if value >> 63 else value


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise BadExpressionError("division by 0")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _remainder(left: int, right: int) -> int:
    return left - right * _divide(left, right)


_BINARY: dict[str, Callable[[int, int], int]] = {
    "|": operator.or_,
    "^": operator.xor,
    "&": operator.and_,
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "<<": lambda left, right: left << (right & 63),
    ">>": lambda left, right: left >> (right & 63),
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": _remainder,
}


class _Evaluation:
    def __init__(self, variables: Variables) -> None:
        self._variables = variables
        self._tokens: list[str] = []
        self._at = 0
        self._depth = 0
        self._skipping = 0  # inside the branch of `?:`, `&&`, `||` that is not taken: nothing is assigned

    def run(self, expression: str, depth: int) -> int:
        outer = self._tokens, self._at, self._depth
        self._tokens, self._at, self._depth = _tokens(expression), 0, depth
        if depth > _MAX_DEPTH:
            raise BadExpressionError("nested too deeply")
        value = self._comma() if self._tokens else 0
        if self._at < len(self._tokens):
            raise BadExpressionError(f"unexpected {self._tokens[self._at]}")
        self._tokens, self._at, self._depth = outer
        return value

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise BadExpressionError("nested too deeply")
        yield
        self._depth -= 1

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, *tokens: str) -> str:
        token = self._peek()
        if token and token in tokens:
            self._at += 1
            return token
        return ""

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise BadExpressionError(f"{token} expected")

    def _comma(self) -> int:
        value = self._assignment()
        while self._take(","):
            value = self._assignment()
        return value

    def _assignment(self) -> int:
        start = self._at
        target = self._target()
        sign = self._take("=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=") if target else ""
        with self._deeper():
            if target is None or not sign:
                self._at = start
                return self._conditional()
            value = self._assignment()
            if sign != "=":
                value = _wrap(_BINARY[sign[:-1]](self._read(*target), value))
            self._write(target, value)
            return value

    def _conditional(self) -> int:
        condition = self._binary(0)
        if not self._take("?"):
            return condition
        first = self._maybe(self._assignment, taken=condition != 0)
        self._expect(":")
        second = self._maybe(self._assignment, taken=condition == 0)
        return first if condition else second

    def _maybe(self, parse: Callable[[], int], *, taken: bool) -> int:
        self._skipping += not taken
        value = parse()
        self._skipping -= not taken
        return value

    def _binary(self, floor: int) -> int:
        """Operators of precedence `floor` and tighter."""
        value = self._power()
        while (level := _PRECEDENCE.get(sign := self._peek(), -1)) >= floor:
            self._at += 1
            if sign in ("&&", "||"):
                right = self._maybe(partial(self._binary, level + 1), taken=(value != 0) == (sign == "&&"))
                value = int(bool(value) and bool(right)) if sign == "&&" else int(bool(value) or bool(right))
                continue
            right = self._binary(level + 1)
            if sign in "/%" and right == 0 and self._skipping:
                continue
            value = _wrap(int(_BINARY[sign](value, right)))
        return value

    def _power(self) -> int:
        base = self._unary()
        if not self._take("**"):
            return base
        with self._deeper():
            exponent = self._power()
        if not 0 <= exponent <= _MAX_POWER:
            raise BadExpressionError("exponent out of range")
        return _wrap(base**exponent)

    def _unary(self) -> int:
        if sign := self._take("++", "--"):
            target = self._target()
            if target is None:  # two signs
                with self._deeper():
                    return self._unary()
            value = _wrap(self._read(*target) + (1 if sign == "++" else -1))
            self._write(target, value)
            return value
        if sign := self._take("+", "-", "!", "~"):
            with self._deeper():
                value = self._unary()
            return {"+": value, "-": _wrap(-value), "!": int(not value), "~": _wrap(~value)}[sign]
        return self._primary()

    def _primary(self) -> int:
        if self._take("("):
            with self._deeper():
                value = self._comma()
            self._expect(")")
            return value
        token = self._peek()
        if token[:1].isdigit():
            self._at += 1
            return _number(token)
        target = self._target()
        if target is None:
            raise BadExpressionError(f"unexpected {token or 'end'}")
        value = self._read(*target)
        if sign := self._take("++", "--"):
            self._write(target, _wrap(value + (1 if sign == "++" else -1)))
        return value

    def _target(self) -> tuple[str, str | None] | None:
        name = self._peek()
        if not (name[:1].isalpha() or name[:1] == "_"):
            return None
        self._at += 1
        if not self._take("["):
            return name, None
        start, depth = self._at, 1
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            depth += (token == "[") - (token == "]")
            self._at += 1
            if depth == 0:
                return name, "".join(self._tokens[start : self._at - 1])
        raise BadExpressionError("] expected")

    def _read(self, name: str, subscript: str | None) -> int:
        text = self._variables.number_text(name, subscript).strip()
        if not text:
            return 0
        return _wrap(int(text)) if text.isdigit() and text[0] != "0" else self.run(text, self._depth + 1)

    def _write(self, target: tuple[str, str | None], value: int) -> None:
        if not self._skipping:
            self._variables.assign_number(*target, value)


def _tokens(expression: str) -> list[str]:
    tokens, position = [], 0
    expression = expression.rstrip()
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        if match is None:
            raise BadExpressionError(f"unexpected {expression[position : position + 10]!r}")
        tokens.append(match[1] or match[2] or match[3])
        position = match.end()
    return tokens


def _number(token: str) -> int:
    if len(token) > 40:
        raise BadExpressionError("number too long")
    try:
        if "#" in token:
            base, digits = token.split("#", 1)
            return _wrap(int(digits, int(base)))
        if token[:2] in ("0x", "0X"):
            return _wrap(int(token, 16))
        return _wrap(int(token, 8) if token[0] == "0" and len(token) > 1 else int(token))
    except ValueError as error:
        raise BadExpressionError(f"bad number {token}") from error

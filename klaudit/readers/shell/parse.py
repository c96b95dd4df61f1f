"""From tree-sitter's syntax tree to a Program.

tree-sitter finds the structure, also in broken scripts; the lexer reads the words.  Where the two disagree on where a simple command
ends, the lexer is right: nodes inside what it has read are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from klaudit.readers.shell.code import Code
from klaudit.readers.shell.lexer import Lexer
from klaudit.readers.shell.program import (
    Branch,
    Case,
    Define,
    Evaluate,
    ForEach,
    Instruction,
    Jump,
    Loop,
    LoopTest,
    Negate,
    Next,
    Program,
    Range,
    Redirected,
    Restore,
    Return,
    Run,
    Stage,
    Subshell,
    Succeed,
)
from klaudit.readers.shell.text import encode

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_I = TypeVar("_I", bound=Instruction)

_MAX_DEPTH = 120  # compound commands inside compound commands

# Before a command: blanks, line ends, and the brace of `! { ..; }`, which the grammar takes for a command named "{".
_NO_COMMAND = re.compile(r"(?:\s|\\\n|\{(?=\s)|\}(?=[\s;]|\Z))*")

_SIMPLE = frozenset(
    {"command", "variable_assignment", "variable_assignments", "declaration_command", "unset_command", "word", "string"}
)
_WORDS = frozenset({"concatenation", "raw_string", "ansi_c_string", "simple_expansion", "expansion", "number"})


@cache
def _parser() -> Parser:
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def parse(code: Code) -> Program:
    """The code's program, parsed once."""
    if code.program is None:
        # A backslash at the very end continues into nothing; the grammar takes it for an error.
        tree = _parser().parse(encode(code.text) + b"\n\n")
        code.program = _Translator(code).translate(tree.root_node)
    return code.program


class _Translator:
    def __init__(self, code: Code) -> None:
        self._text = code.text
        self._lexer = Lexer(code)
        self._out: list[Instruction] = []
        self._errors: list[tuple[int, str]] = []
        self._read_to = 0  # the lexer has read up to here
        self._bodies: list[Range] = []  # heredoc bodies
        self._depth = 0

    def translate(self, root: Node) -> Program:
        if root.type == "program":
            self._sequence(root.children)
        else:
            self._sequence([root])
        self._out.append(Return())
        return Program(self._out, self._errors)

    def _sequence(self, nodes: Sequence[Node], *, tested: bool = False) -> None:
        for index, node in enumerate(nodes):
            if not node.is_named or node.type == "comment" or self._is_read(node):
                continue
            is_background = index + 1 < len(nodes) and nodes[index + 1].type == "&"
            if is_background:
                subshell = self._add(Subshell())
                self._statement(node, tested)
                self._out.append(Return())
                subshell.end = len(self._out)
                self._out.append(Succeed())
            else:
                self._statement(node, tested)

    def _is_read(self, node: Node) -> bool:
        start = node.start_byte
        return start < self._read_to or any(first <= start < last for first, last in self._bodies)

    def _statement(self, node: Node, tested: bool) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self._errors.append((node.start_byte, "commands nested too deeply"))
        else:
            self._dispatch(node, tested)
        self._depth -= 1

    def _dispatch(self, node: Node, tested: bool) -> None:
        kind = node.type
        if kind in _SIMPLE:
            self._simple(node, tested)
        elif kind == "test_command":
            self._test(node, tested)
        elif kind == "list":
            self._and_or(node, tested)
        elif kind == "pipeline":
            self._pipeline(_pipeline_stages(node), tested)
        elif kind == "redirected_statement":
            self._redirected(node, tested)
        elif kind == "negated_command":
            self._sequence(node.children[1:], tested=True)
            self._out.append(Negate())
        elif kind == "if_statement":
            self._if(node, tested)
        elif kind == "while_statement":
            self._while(node, tested)
        elif kind == "for_statement":
            self._for(node, tested)
        elif kind == "c_style_for_statement":
            self._c_style_for(node, tested)
        elif kind == "case_statement":
            self._case(node, tested)
        elif kind == "function_definition":
            self._function(node)
        elif kind == "subshell":
            self._subshell(node, tested)
        elif kind == "compound_statement" and node.children and node.children[0].type == "((":
            self._out.append(Evaluate("((", _inside(node), tested))
        elif kind == "ERROR":
            self._errors.append((node.start_byte, "syntax error"))
            self._sequence(node.children, tested=tested)
        elif kind in _WORDS:
            self._simple(node, tested)
        else:  # groups; whatever the grammar may add
            self._sequence(node.children, tested=tested)

    def _simple(self, node: Node, tested: bool) -> None:
        """A simple command; the grammar sometimes takes two lines for one, after assignments without a command."""
        start, end = node.start_byte, node.end_byte
        while start < end:
            start = _NO_COMMAND.match(self._text, start).end()
            command = self._lexer.simple_command(start)
            if command.end == start:
                break
            self._read_to = max(self._read_to, command.end)
            for redirect in command.redirects:
                if redirect.operator == "<<":
                    self._bodies.append((redirect.target.start, redirect.target.end))
                    end = min(end, command.end)
            if command.words or command.assignments or command.redirects:
                self._out.append(Run(command, tested))
            start = command.end

    def _test(self, node: Node, tested: bool) -> None:
        opener = node.children[0].type if node.children else ""
        if opener in ("[[", "(("):
            self._out.append(Evaluate("[[" if opener == "[[" else "((", _inside(node), tested))
        else:
            self._simple(node, tested)

    def _and_or(self, node: Node, tested: bool) -> None:
        """`a && b || c`, which the grammar nests to the left."""
        tail: list[tuple[str, Node]] = []
        while node.type == "list" and len(node.children) >= 3:
            operator = next((child.type for child in node.children if child.type in ("&&", "||")), "&&")
            tail.append((operator, node.children[-1]))
            node = node.children[0]
        tail.reverse()
        self._chain(node, tail, tested)

    def _chain(self, first: Node, tail: Sequence[tuple[str, Node]], tested: bool) -> None:
        branches, end = list[Branch](), first.end_byte
        self._statement(first, tested or bool(tail))
        for index, (operator, node) in enumerate(tail):
            branch = self._add(Branch(operator == "||", (first.start_byte, end)))
            branches.append(branch)
            self._sequence([node], tested=tested or index + 1 < len(tail))
            branch.target = len(self._out)
            end = node.end_byte
        for branch in branches:
            branch.join = len(self._out)

    def _pipeline(self, stages: Sequence[Node], tested: bool) -> None:
        for index, node in enumerate(stages):
            stage = self._add(Stage(index == 0, index == len(stages) - 1))
            self._sequence([node], tested=tested or not stage.is_last)
            self._out.append(Return())
            stage.end = len(self._out)

    def _redirected(self, node: Node, tested: bool) -> None:
        """A command with redirections.  The grammar hangs what follows a heredoc on the same line below the heredoc."""
        body = node.child_by_field_name("body")
        redirects = [child for child in node.children if child.type.endswith("_redirect")]
        piped: list[Node] = []
        tail: list[tuple[str, Node]] = []
        for redirect in redirects:
            operator = ""
            for child in redirect.children if redirect.type == "heredoc_redirect" else ():
                if child.type in ("&&", "||"):
                    operator = child.type
                elif child.type == "pipeline":
                    piped += _pipeline_stages(child)
                elif operator and child.is_named:
                    tail.append((operator, child))
                    operator = ""
        start, branches = node.start_byte, list[Branch]()
        stage = self._add(Stage(is_first=True, is_last=False)) if piped else None
        self._redirected_body(node, body, redirects, tested or bool(piped or tail))
        if stage is not None:
            self._out.append(Return())
            stage.end = len(self._out)
        for index, child in enumerate(piped):
            stage = self._add(Stage(is_first=False, is_last=index == len(piped) - 1))
            self._sequence([child], tested=tested)
            self._out.append(Return())
            stage.end = len(self._out)
        for operator, child in tail:
            branch = self._add(Branch(operator == "||", (start, child.start_byte)))
            branches.append(branch)
            self._sequence([child], tested=tested)
            branch.target = len(self._out)
        for branch in branches:
            branch.join = len(self._out)

    def _redirected_body(self, node: Node, body: Node | None, redirects: Sequence[Node], tested: bool) -> None:
        if body is None or body.type in _SIMPLE:
            self._simple(node, tested)
        elif body.type in ("pipeline", "list", "negated_command"):  # they belong to its last command, where the lexer sees them
            self._statement(body, tested)
        else:
            found = self._lexer.redirects(redirects[0].start_byte, node.end_byte) if redirects else ()
            self._bodies += [(each.target.start, each.target.end) for each in found if each.operator == "<<"]
            self._out.append(Redirected(found))
            self._statement(body, tested)
            self._out.append(Restore())

    def _if(self, node: Node, tested: bool) -> None:
        clauses = _clauses(node)
        jumps, branches = list[Jump](), list[Branch]()
        for condition, body in clauses:
            branch = None
            if condition:
                self._sequence(condition, tested=True)
                branch = self._add(Branch(False, (condition[0].start_byte, condition[-1].end_byte)))
                branches.append(branch)
            self._sequence(body, tested=tested)
            jumps.append(self._add(Jump()))
            if branch is not None:
                branch.target = len(self._out)
        for jump in jumps:
            jump.target = len(self._out)
        for branch in branches:
            branch.join = len(self._out)

    def _while(self, node: Node, tested: bool) -> None:
        condition = [child for child in node.children_by_field_name("condition") if child.is_named]
        body = node.child_by_field_name("body")
        loop = self._add(Loop())
        loop.again = len(self._out)
        self._sequence(condition, tested=True)
        words = (condition[0].start_byte, condition[-1].end_byte) if condition else (node.start_byte, node.start_byte)
        test = self._add(LoopTest(bool(node.children) and node.children[0].type == "until", words))
        self._sequence(body.children if body is not None else (), tested=tested)
        self._out.append(Jump(loop.again))
        loop.end = test.end = len(self._out)

    def _for(self, node: Node, tested: bool) -> None:
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        if variable is None or body is None or node.children[0].type == "select":  # select asks the user
            return
        values = node.children_by_field_name("value")
        has_list = any(child.type == "in" for child in node.children)
        words = self._lexer.words(values[0].start_byte, values[-1].end_byte) if values else ()
        name = self._text[variable.start_byte : variable.end_byte]
        each = self._add(ForEach(name, words if has_list else None))
        following = self._add(Next(name))
        again = len(self._out) - 1
        self._sequence(body.children, tested=tested)
        self._out.append(Jump(again))
        each.end = following.end = len(self._out)

    def _c_style_for(self, node: Node, tested: bool) -> None:
        body = node.child_by_field_name("body")
        opener = next((child for child in node.children if child.type == "(("), None)
        closer = next((child for child in node.children if child.type == "))"), None)
        if body is None or opener is None or closer is None:
            return
        first, condition, update = _split_header(self._text, opener.end_byte, closer.start_byte)
        self._out.append(Evaluate("((", first, True))
        loop = self._add(Loop())
        test_at = len(self._out)
        if self._text[slice(*condition)].strip():
            self._out.append(Evaluate("((", condition, True))
        else:
            self._out.append(Succeed())
        test = self._add(LoopTest(False, condition))
        self._sequence(body.children, tested=tested)
        loop.again = len(self._out)
        self._out.append(Evaluate("((", update, True))
        self._out.append(Jump(test_at))
        loop.end = test.end = len(self._out)

    def _case(self, node: Node, tested: bool) -> None:
        value = node.child_by_field_name("value")
        if value is None:
            return
        case = self._add(Case(self._lexer.word(value.start_byte, value.end_byte)))
        jumps: list[Jump] = []
        for item in node.children:
            if item.type != "case_item":
                continue
            patterns = item.children_by_field_name("value")
            case.arms.append(
                (tuple(self._lexer.word(each.start_byte, each.end_byte) for each in patterns), len(self._out))
            )
            after = patterns[-1].end_byte if patterns else item.start_byte
            self._sequence([child for child in item.children if child.start_byte > after], tested=tested)
            if item.child_by_field_name("fallthrough") is None:
                jumps.append(self._add(Jump()))
        for jump in jumps:
            jump.target = len(self._out)
        case.join = len(self._out)

    def _function(self, node: Node) -> None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is None or body is None:
            return
        define = self._add(Define(self._text[name.start_byte : name.end_byte]))
        self._statement(body, tested=False)
        self._out.append(Return())
        define.end = len(self._out)

    def _subshell(self, node: Node, tested: bool) -> None:
        subshell = self._add(Subshell())
        self._sequence(node.children, tested=tested)
        self._out.append(Return())
        subshell.end = len(self._out)

    def _add(self, instruction: _I) -> _I:
        self._out.append(instruction)
        return instruction


def _inside(node: Node) -> Range:
    """What stands between two-character brackets."""
    return node.start_byte + 2, max(node.end_byte - 2, node.start_byte + 2)


def _pipeline_stages(node: Node) -> list[Node]:
    """The commands of a pipeline, which the grammar may nest."""
    stages: list[Node] = []
    pending = [node]
    while pending:
        node = pending.pop()
        if node.type == "pipeline":
            pending += reversed([child for child in node.children if child.is_named and child.type != "comment"])
        else:
            stages.append(node)
    return stages


def _clauses(node: Node) -> list[tuple[list[Node], list[Node]]]:
    """The (condition, body) pairs of an `if`; the `else` has no condition."""
    clauses: list[tuple[list[Node], list[Node]]] = []
    condition: list[Node] = []
    body: list[Node] = []
    in_body = False
    for child in node.children:
        if child.type in ("elif_clause", "else_clause"):
            clauses += _clauses(child)
        elif child.type == "then":
            in_body = True
        elif in_body or node.type == "else_clause":
            body.append(child)
        elif child.is_named and child.type != "comment":
            condition.append(child)
    clauses.insert(0, (condition, body))
    return clauses


def _split_header(text: str, start: int, end: int) -> tuple[Range, Range, Range]:
    """The three expressions of a C-style `for`."""
    first = text.find(";", start, end)
    first = end if first == -1 else first
    second = text.find(";", first + 1, end)
    second = end if second == -1 else second
    return (start, first), (min(first + 1, end), second), (min(second + 1, end), end)

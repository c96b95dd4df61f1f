"""The suppressions of one file: which comments suppress what, and where."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from klaudit.gate.comments import Piece, Range, pieces_of
from klaudit.gate.directives import Directive, directives
from klaudit.model import Finding, Span
from klaudit.readers.source import Source

MAX_COMMENTS = 20_000  # of one file; more are an attack
TOP_LINES = 50  # within which a suppression for the whole file must stand: readers look there
_EVERYTHING: Range = (0, 1 << 62)
_TREES = (".yaml", ".yml", ".toml")


class Suppression(Struct):
    """One directive of a comment, which begins at `comment` of its piece.

    `ranges` are bytes of the file, by rule, `ends` what ends a block of them, and `closes` the rules whose blocks this one ends; `used`
    are the rules of which it has suppressed something, `suppressed` those findings.  `problem` says why it does nothing.
    """

    directive: Directive
    piece: Piece
    comment: Range
    span: Span
    ranges: dict[str, list[Range]]
    problem: str = ""
    ends: dict[str, Suppression] = field(default_factory=dict)
    closes: set[str] = field(default_factory=set)
    used: set[str] = field(default_factory=set)
    suppressed: list[Finding] = field(default_factory=list)


class Silencer:
    """All suppressions of a file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._pieces = pieces_of(source)
        self.suppressions = list(_blocks(_read(self._pieces)))
        self._by_rule: dict[str, _Intervals] = {}
        by_rule: dict[str, list[tuple[int, int, Suppression]]] = {}
        for suppression in self.suppressions:
            for rule, ranges in suppression.ranges.items():
                by_rule.setdefault(rule, []).extend((start, end, suppression) for start, end in ranges)
        for rule, intervals in by_rule.items():
            self._by_rule[rule] = _Intervals(intervals)

    def suppressing(self, finding: Finding) -> list[Suppression]:
        """Those that a finding in this file meets: its own place, or that of its launch where that is a statement of this file."""
        intervals = self._by_rule.get(finding.rule)
        if intervals is None:
            return []
        found = list(intervals.meeting(*bytes_of(finding.span, self.source, self._pieces)))
        launch = finding.launch
        # in a tree of keys the launch stands for the file, which its first entry does not
        if launch is not None and launch.path == finding.span.path and not launch.path.lower().endswith(_TREES):
            found += intervals.meeting(launch.start, launch.end)
        return list({id(suppression): suppression for suppression in found}.values())


def bytes_of(span: Span, source: Source, pieces: list[Piece]) -> Range:
    """Bytes of a finding's place in a file: the whole line where a reader knew no more than that, the first entry for a file as a whole."""
    if span.end > 0:
        return span.start, span.end
    if span.line == 1:
        first = next((unit for piece in pieces[:1] if (unit := piece.first) is not None), (0, 0))
        return _in_file(pieces[0], first) if pieces else first
    lines = source.data.split(b"\n", span.line)
    start = sum(len(line) + 1 for line in lines[: span.line - 1])
    return start, start + (len(lines[span.line - 1]) if span.line <= len(lines) else 0)


class _Intervals:
    """Ranges of bytes with what they belong to."""

    def __init__(self, intervals: Iterable[tuple[int, int, Suppression]]) -> None:
        self._intervals = sorted(intervals, key=lambda each: each[:2])
        self._starts = [start for start, _, _ in self._intervals]
        self._reach: list[int] = []  # the farthest end up to each
        for _, end, _ in self._intervals:
            self._reach.append(max(end, self._reach[-1] if self._reach else 0))

    def meeting(self, start: int, end: int) -> Iterator[Suppression]:
        """Those that share a byte with `start`..`end`, or touch it where that is empty; the nearest first."""
        at = bisect_right(self._starts, end if end == start else end - 1) - 1
        while at >= 0 and self._reach[at] >= start:
            _, stop, suppression = self._intervals[at]
            if stop > start or (stop == start == end):
                yield suppression
            at -= 1


def _read(pieces: list[Piece]) -> Iterator[Suppression]:
    """The directives of a file in order of writing, each with what its comment is about."""
    found: dict[int, tuple[Piece, Range]] = {}
    for piece in pieces:
        for comment in piece.comments:
            if piece.data.find(b"klaudit:", *comment) != -1:
                found.setdefault(piece.source.span(*comment).start, (piece, comment))
    count = 0
    for _, (piece, comment) in sorted(found.items(), key=lambda item: item[0]):
        text = piece.data[slice(*comment)].decode("utf-8", "surrogateescape")
        seen, at = 0, comment[0]  # characters of the comment, and the byte of the piece that they lead to
        for directive in directives(text):
            start = at + _size(text[seen : directive.start])
            seen, at = directive.end, start + _size(text[directive.start : directive.end])
            suppression = Suppression(directive, piece, comment, piece.source.span(start, at), {}, directive.problem)
            count += 1
            if count > MAX_COMMENTS:
                suppression.problem = f"more than {MAX_COMMENTS:,} comments of klaudit stand in this file"
                yield suppression
                return
            if not directive.problem:
                _give_ranges(suppression, is_first_piece=piece is pieces[0])
            yield suppression


def _give_ranges(suppression: Suppression, *, is_first_piece: bool) -> None:
    """What a directive for one statement or for the file covers; blocks wait for their ends."""
    directive, piece, span = suppression.directive, suppression.piece, suppression.span
    if directive.verb == "ignore":
        covered = [_in_file(piece, unit) for unit in piece.covered(suppression.comment)]
        suppression.ranges = dict.fromkeys(directive.rules, covered)
        if not covered:
            suppression.problem = "nothing follows it that it could be about"
    elif directive.verb == "ignore-file":
        if span.line <= TOP_LINES if span.cell is None else is_first_piece:
            suppression.ranges = {rule: [_EVERYTHING] for rule in directive.rules}
        else:
            where = f"the first {TOP_LINES} lines" if span.cell is None else "the first cell with code"
            suppression.problem = f"`ignore-file` must stand in {where}, where readers see it"


def _in_file(piece: Piece, unit: Range) -> Range:
    span = piece.source.span(*unit)
    return span.start, span.end


def _blocks(suppressions: Iterable[Suppression]) -> Iterator[Suppression]:
    """Ends close the nearest start above that has their rules (without rules: the nearest start); a start without an end does nothing."""
    stacks: dict[str, list[Suppression]] = {}
    opened: dict[int, tuple[Suppression, set[str]]] = {}  # what each start still waits for
    for suppression in suppressions:
        yield suppression
        directive = suppression.directive
        if suppression.problem:
            continue
        if directive.verb == "ignore-start":
            opened[id(suppression)] = suppression, set(directive.rules)
            for rule in directive.rules:
                stacks.setdefault(rule, []).append(suppression)
        elif directive.verb == "ignore-end":
            last = next(reversed(opened.values()), None)
            wanted = directive.rules if directive.names else frozenset(last[1] if last is not None else ())
            if not wanted and not directive.names:
                suppression.problem = "no `ignore-start` above it is open"
            for rule in sorted(wanted):
                stack = stacks.get(rule)
                if not stack:
                    suppression.problem = f"no `ignore-start[{rule}]` above it is open"
                    continue
                start = stack.pop()
                start.ranges[rule] = [(start.span.end, suppression.span.start)]
                start.ends[rule] = suppression
                suppression.closes.add(rule)
                waiting = opened[id(start)][1]
                waiting.discard(rule)
                if not waiting:
                    del opened[id(start)]
    for start, waiting in opened.values():
        start.problem = f"no `ignore-end[{', '.join(sorted(waiting))}]` follows"


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))

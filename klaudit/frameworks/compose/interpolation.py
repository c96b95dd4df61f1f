"""What interpolations evaluate to, and where the value they reach was written."""

from __future__ import annotations

from collections.abc import Mapping

from klaudit.frameworks.compose import interpolation_grammar as grammar
from klaudit.frameworks.compose.found import DeadEndError, Found, UnresolvedError
from klaudit.frameworks.compose.items import (
    Branch,
    Container,
    Item,
    Leaf,
    Listing,
    Written,
    child,
    from_value,
    scalars,
    split_key,
)
from klaudit.frameworks.compose.primitives import GrammarError
from klaudit.frameworks.compose.resolvers import RESOLVERS, shown
from klaudit.model import Unknown, Value

MAX_STEPS = 20_000  # of one question: doubling interpolations would go on for ever
MAX_LENGTH = 100_000
MAX_CHAIN = 30  # interpolations that lead to interpolations
MAX_DEPTH = 60  # of a value, through interpolations


def malformed(root: Item, limit: int) -> tuple[Leaf, str] | None:
    """The first interpolation that is none, with what is wrong with it: OmegaConf refuses to take it in."""
    for leaf in scalars(root, limit):
        if leaf.is_interpolation:
            try:
                grammar.parse_text(str(leaf.value))
            except GrammarError as error:
                return leaf, f"{leaf.value} is no interpolation: {error}"
    return None


class Resolver:
    """Reads names of one configuration.

    `environment` holds what is known of environment variables; one that is absent counts as unset.
    """

    def __init__(self, root: Branch, environment: Mapping[str, str | None] | None = None) -> None:
        self._root = root
        self.environment: Mapping[str, str | None] = {} if environment is None else environment
        self._active: set[tuple[str, ...]] = set()
        self._steps = 0
        self._depth = 0

    def find(self, name: str) -> Found | None:
        """The item at a dotted name, interpolated branches above it followed.  Raises UnresolvedError."""
        self._steps = 0
        return self._walk(Found(self._root, (), ()), split_key(name))

    def value(self, found: Found) -> tuple[Value, Written | None]:
        """The resolved value of an item and, where an interpolation led to another key, that key's place."""
        try:
            return self.strict_value(found)
        except UnresolvedError as error:
            return _unknown(found, error), None

    def strict_value(self, found: Found) -> tuple[Value, Written | None]:
        """The same.  Raises UnresolvedError for an interpolation that cannot be resolved."""
        self._steps = 0
        target = self._follow(found)
        if not isinstance(target, Found):
            return target, None
        return self.plain(target), None if target.item is found.item else target.item.written

    def container(self, found: Found) -> Container | None:
        """The branch or list that an item is or leads to; None for everything else."""
        self._steps = 0
        try:
            target = self._follow(found)
        except UnresolvedError:
            return None
        if not isinstance(target, Found):
            item = from_value(target, found.item.written)
            return None if isinstance(item, Leaf) else item
        return None if isinstance(target.item, Leaf) else target.item

    def _walk(
        self, start: Found, keys: list[str], *, throw_on_missing: bool = False, is_reference: bool = False
    ) -> Found | None:
        """Down from `start`; None where there is nothing."""
        found = start
        for at, key in enumerate(keys):
            if at:
                target = self._follow(found)
                found = target if isinstance(target, Found) else self._wrapped(target, found)
            container = found.item
            if isinstance(container, Leaf):
                if isinstance(container.value, Unknown):
                    raise UnresolvedError(*container.value.hangs_on)
                return None
            if is_reference and isinstance(container, Listing) and not _is_index(key):
                raise DeadEndError(key)  # OmegaConf fails here instead of finding nothing
            item = child(container, key)
            if item is None:
                return None
            found = Found(item, (*found.above, container), (*found.name, key))
            if throw_on_missing and isinstance(item, Leaf) and item.is_missing:
                raise DeadEndError(".".join(found.name))
        return found

    def _wrapped(self, value: Value, found: Found) -> Found:
        """A value that a resolver made, in the place of the interpolation."""
        written = found.item.written
        item = from_value(value, written) if isinstance(value, (dict, list)) else Leaf(value, written, is_result=True)
        return Found(item, found.above, found.name)

    def _follow(self, found: Found) -> Found | Value:
        """The item that an interpolation leads to (itself for anything else), or the value that it makes."""
        item = found.item
        if not isinstance(item, Leaf) or not item.is_interpolation:
            return found
        if found.name in self._active:
            raise DeadEndError(".".join(found.name))
        if len(self._active) >= MAX_CHAIN:
            raise UnresolvedError(".".join(found.name))
        self._active.add(found.name)
        try:
            return self._joined(_parsed(item), found)
        finally:
            self._active.discard(found.name)

    def _joined(self, joined: grammar.Joined, found: Found) -> Found | Value:
        self._step()
        pieces = joined.pieces
        if len(pieces) == 1 and not isinstance(pieces[0], str) and not joined.is_quoted:
            return self._interpolation(pieces[0], found)
        texts = [piece if isinstance(piece, str) else self._as_text(piece, found) for piece in pieces]
        if sum(map(len, texts)) > MAX_LENGTH:
            raise UnresolvedError(".".join(found.name))
        return "".join(texts)

    def _as_text(self, piece: grammar.Interpolation, found: Found) -> str:
        value = self._interpolation(piece, found)
        if isinstance(value, Found):
            return shown(self._raw(value.item))
        if isinstance(value, (dict, list)):  # made by a resolver: shown with inner interpolations of its own
            raise UnresolvedError(".".join(found.name))
        return shown(value)

    def _raw(self, item: Item) -> Value:
        """An item as it is written: inside a text, OmegaConf shows a branch with its interpolations unresolved."""
        self._step()
        if isinstance(item, Leaf):
            return item.value
        if isinstance(item, Branch):
            return {key: self._raw(inner) for key, inner in item.items.items()}
        return [self._raw(inner) for inner in item.items]

    def _interpolation(self, piece: grammar.Interpolation, found: Found) -> Found | Value:
        if isinstance(piece, grammar.Call):
            return self._call(piece, found)
        key = self._key(piece.pieces, found)
        target = self.reference(key, found, throw_on_missing=True)
        if target is None:
            raise DeadEndError(key)
        if len(target.name) < len(found.name) and found.name[: len(target.name)] == target.name:  # it contains itself
            raise DeadEndError(key)
        return target

    def _key(self, pieces: tuple[str | grammar.Interpolation, ...], found: Found) -> str:
        texts = []
        for piece in pieces:
            if isinstance(piece, str):
                texts.append(piece)
                continue
            value = self._interpolation(piece, found)
            plain = self.plain(value) if isinstance(value, Found) else value
            if not isinstance(plain, str):
                raise UnresolvedError(*(plain.hangs_on if isinstance(plain, Unknown) else (".".join(found.name),)))
            texts.append(plain)
        return "".join(texts)

    def reference(self, key: str, found: Found, *, throw_on_missing: bool) -> Found | None:
        """The item a dotted name means as seen from `found`, followed to the end.

        Leading dots count containers outwards.
        """
        self._step()
        stripped = key.lstrip(".")
        up = len(key) - len(stripped)
        if up > len(found.above):
            raise DeadEndError(key)
        start = Found(self._root, (), ())
        if up:
            depth = len(found.above) - up
            start = Found(found.above[depth], found.above[:depth], found.name[:depth])
        keys = split_key(stripped) if stripped else []
        target = self._walk(start, keys, throw_on_missing=throw_on_missing, is_reference=True)
        if target is None:
            return None
        followed = self._follow(target)
        return followed if isinstance(followed, Found) else self._wrapped(followed, target)

    def _call(self, call: grammar.Call, found: Found) -> Found | Value:
        name = self._key(call.name, found)
        resolver = RESOLVERS.get(name)
        if resolver is None:
            raise UnresolvedError(call.text)
        return resolver(self, [self.element(argument, found) for argument in call.arguments], found)

    def element(self, element: grammar.Element, found: Found) -> Value:
        self._step()
        if isinstance(element, grammar.Constant):
            return element.value
        if isinstance(element, grammar.Joined):
            value = self._joined(element, found)
            return self.plain(value) if isinstance(value, Found) else value
        if isinstance(element, grammar.Sequence):
            return [self.element(item, found) for item in element.items]
        return {key: self.element(item, found) for key, item in element.items}

    def plain(self, found: Found) -> Value:
        """The item as a plain value, interpolations inside it resolved."""
        self._step()
        item = found.item
        if isinstance(item, Leaf):
            if item.is_missing:
                return Unknown((".".join(found.name),), str(item.value))
            if not item.is_interpolation:
                return item.value
            try:
                target = self._follow(found)
            except UnresolvedError as error:
                return _unknown(found, error)
            return self.plain(target) if isinstance(target, Found) else target
        if self._depth >= MAX_DEPTH:
            return Unknown((".".join(found.name),))
        self._depth += 1
        try:
            return self._inside(item, (*found.above, item), found.name)
        finally:
            self._depth -= 1

    def _inside(self, item: Container, above: tuple[Container, ...], name: tuple[str, ...]) -> Value:
        if isinstance(item, Branch):
            return {key: self.plain(Found(inner, above, (*name, key))) for key, inner in item.items.items()}
        return [self.plain(Found(inner, above, (*name, str(at)))) for at, inner in enumerate(item.items)]

    def _step(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise UnresolvedError("too many interpolations")


def _is_index(key: str) -> bool:
    return key.lstrip("+-").isdecimal()


def _parsed(leaf: Leaf) -> grammar.Joined:
    try:
        return grammar.parse_text(str(leaf.value))
    except GrammarError:
        raise UnresolvedError(str(leaf.value)) from None


def _unknown(found: Found, error: UnresolvedError) -> Unknown:
    text = str(found.item.value) if isinstance(found.item, Leaf) else ""
    return Unknown(error.hangs_on, text)

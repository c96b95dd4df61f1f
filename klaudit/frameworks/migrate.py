"""Which settings lead from a set-up to another one: the recipes of the rules, spelled for the version in use."""

from __future__ import annotations

from msgspec import Struct

from klaudit.frameworks.resolution import Effective, Resolution, TermState
from klaudit.frameworks.rules import CodeChange, Plain, Recipe
from klaudit.model import Value


class Change(Struct, frozen=True):
    """Settings to write (spelling, value) and to take away, by spelling.  `rescued_from_std` lists those that keep the penalty out of
    group-std normalisation, `carried` the setting that takes the coefficient over, and the one that has it now."""

    recipe: Recipe
    write: tuple[tuple[str, Value], ...]
    remove: tuple[str, ...]
    rescued_from_std: tuple[str, ...]
    carried: tuple[str, Effective] | None = None
    amount: float | None = None  # the coefficient in force, None where it is unknown

    @property
    def is_empty(self) -> bool:
        """Whether the launch is such a set-up already."""
        return not (self.write or self.remove or self.recipe.code)

    @property
    def explanation(self) -> str:
        return self.recipe.explanation or self.recipe.why


class Impossible(Struct, frozen=True):
    """No such set-up here, and why."""

    why: str


def change(
    resolution: Resolution, target: str, *, keep_std: bool = False, choice: str = ""
) -> Change | Impossible | None:
    """The change that takes the launch to `target`, of several ways the one called `choice`; None where the rules know no recipe."""
    recipes = [
        each for each in resolution.launch.trainer.recipes if each.target == target and each.choice in ("", choice)
    ]
    recipe, known, _ = resolution.first(recipes)
    if not isinstance(recipe, Recipe) or known is None:
        return None
    if target != "no-kl" and (broken := broken_code(resolution, target)) is not None:
        return Impossible(f"the code in the tree is to be mended first: the penalty {broken}")
    if recipe.impossible:
        return Impossible(recipe.impossible)
    write: dict[str, Value] = {}
    remove = [resolution[id].name for id in recipe.remove if resolution[id].setting is not None]
    for id, value in recipe.set.items():
        if _is_flag_to_drop(resolution, id, value):
            remove.append(resolution[id].name)
        else:
            _write(resolution, write, id, value)
    term = _migrated(resolution)
    carried = None
    if recipe.coefficient and term is not None and term.coefficient is not None:
        carried = (resolution.spelling(recipe.coefficient), term.coefficient)
    if recipe.coefficient and term is not None and term.term.coefficient is not None:
        _write(resolution, write, recipe.coefficient, term.term.coefficient)
    if recipe.code is not None:
        _change_class(resolution, recipe, recipe.code, write, remove)
    rescued = []
    if not keep_std and _would_be_normalised(resolution):
        for id, value in recipe.group_std.items():
            if resolution[id].value != value:
                write[resolution.spelling(id)] = value
                rescued.append(resolution.spelling(id))
    return Change(
        recipe,
        tuple(write.items()),
        tuple(dict.fromkeys(remove)),
        tuple(rescued),
        carried,
        term.term.coefficient if term else None,
    )


def _change_class(
    resolution: Resolution, recipe: Recipe, code: CodeChange, write: dict[str, Value], remove: list[str]
) -> None:
    """What another class must be told, because its default is another one, and what it must not be told."""
    given = resolution.launch.configuration.given
    if code.becomes and recipe.coefficient and not given(resolution.spelling(recipe.coefficient)):
        write[resolution.spelling(recipe.coefficient)] = resolution[recipe.coefficient].value
    write |= {name: value for name, value in code.written_out.items() if not given(name)}
    dropped = (name for each in code.dropped if resolution.version in each.versions for name in each.names)
    remove += [name for name in dropped if given(name)]


def broken_code(resolution: Resolution, target: str = "") -> str | None:
    """What is wrong with the code that an active term runs, where no setting mends it: new settings would be read by the same code.

    A loss that loses its gradient is left behind by a penalty that moves into the reward.
    """
    for state in resolution.terms:
        if target == "k1-in-reward" and state.term.placement == "loss" and state.term.verdict == "no-gradient":
            continue
        if state.term.active is not False and state.is_broken and state.consumed is not None:
            return state.consumed.told(state.term.placement)
    return None


def best_change(resolution: Resolution) -> Change | Impossible | None:
    """To k1 in the reward if there is a way, else what comes closest; the first refusal where there is none."""
    refusal: Impossible | None = None
    for target in ("k1-in-reward", "importance-weighted", "straight-through", "k2-in-loss"):
        match change(resolution, target):
            case Impossible() as impossible:
                refusal = refusal or impossible
            case Change() as found:  # with nothing to change this is such a set-up, and the targets below are no better
                return refusal if found.is_empty else found
    return refusal


def _is_flag_to_drop(resolution: Resolution, id: str, value: Plain) -> bool:
    """A flag whose presence alone gives another value: it takes none, so it can only be left out."""
    effective = resolution[id]
    if effective.setting is None or effective.setting.origin == "default" or _same(effective.value, value):
        return False
    spec = resolution.launch.trainer.settings[id]
    return spec.type == "switch" or any(name.has_const and name.name == effective.name for name in spec.names)


def _write(resolution: Resolution, write: dict[str, Value], id: str, value: Plain) -> None:
    """Leave out what already holds by default or by hand."""
    if not _same(resolution[id].value, value):
        write[resolution.spelling(id)] = value


def _migrated(resolution: Resolution) -> TermState | None:
    """The term whose coefficient is carried over: the active one, a loss term first; else one that is meant but never read."""
    active = [state for state in resolution.terms if state.term.active is not False]
    meant = active or [state for state in resolution.terms if state.ignored is not None and state.term.coefficient]
    return min(meant, key=lambda state: state.term.placement != "loss", default=None)


def _would_be_normalised(resolution: Resolution) -> bool:
    rewards = [state.rule for state in resolution.terms if state.rule.placement == "reward"]
    return any(resolution.first(rule.group_std)[1] is not False for rule in rewards)


def _same(value: Value, wanted: Plain) -> bool:
    if isinstance(wanted, bool) or isinstance(value, bool):
        return value is wanted
    return value == wanted

"""Framework files: what is known about each framework, as typed records.  The format is described in rules/schema/framework.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from msgspec import Struct, field
from packaging.version import Version

from klaudit.frameworks.versions import EVERY_VERSION, VersionRange
from klaudit.model import EstimatorName, Gradient, Placement, Severity

# A Value as YAML gives it: never Unknown.  Not spelt as a recursive type, which msgspec could not decode.
Plain: TypeAlias = None | bool | int | float | str | list[Any] | dict[str, Any]
System: TypeAlias = Literal["hydra", "inherit", "dotlist", "flags", "keywords"]
SettingType: TypeAlias = Literal["any", "bool", "switch", "int", "float", "str"]
Condition: TypeAlias = Mapping[str, Plain]


class CheckedIn(Struct, frozen=True):
    """Where a release's own files say a fact.  Only the maintainers' tools/check_rules.py reads this; it explains the kinds."""

    kind: Literal["yaml", "dataclass", "arguments", "words", "text"] = "text"
    path: str = ""
    versions: VersionRange = EVERY_VERSION
    symbol: str = ""  # the class or function in there
    key: str = ""  # the name there, where it is not the setting's own
    prefix: str = ""  # what the setting's name has before the name there
    suffixes: tuple[str, ...] = ()  # words made by appending these to a word that is spelt out
    contains: str = ""
    lacks: str = ""


class Case(Struct, frozen=True):
    """A fact that holds for some versions and under some condition (see conditions.py)."""

    versions: VersionRange = EVERY_VERSION
    when: Condition | None = None
    why: str = ""
    source: str = ""
    checked_in: tuple[CheckedIn, ...] = ()


class Name(Case, frozen=True):
    """One spelling of a setting.  `replaced_by` says what to write instead where this spelling is gone."""

    name: str = ""
    replaced_by: str = ""
    const: Plain = None  # the value that the bare presence of this spelling gives (store_const flags)
    has_const: bool = False


class Default(Case, frozen=True):
    """The value where nothing is set.  `fixed` values cannot be set in those versions: the key does not exist or is not read."""

    value: Plain = None
    fixed: bool = False
    config: tuple[str, ...] = ()  # primary configs it holds for; empty: all


class SettingSpec(Struct, frozen=True):
    id: str
    names: tuple[Name, ...]
    type: SettingType
    defaults: tuple[Default, ...]
    vocabulary: str | None
    choices: tuple[Plain, ...]
    summary: str
    source: str
    checked_in: tuple[CheckedIn, ...] = ()


class Word(Case, frozen=True):
    """One value of an estimator vocabulary."""

    value: Plain = None
    estimator: EstimatorName = "unknown"
    gradient: Gradient | None = None
    raises: str = ""


class Vocabulary(Struct, frozen=True):
    id: str
    words: tuple[Word, ...]
    otherwise_raises: str
    otherwise_why: str
    ignore_case: bool = False
    checked_in: tuple[CheckedIn, ...] = ()


class GradientCase(Case, frozen=True):
    """How gradient reaches the estimator.  `biased` overrules the table: the score weight of a form that is known biased, but in no row.

    `severity` is that of its finding, where the catalogue's is too mild or too harsh for such a form.
    """

    gradient: Gradient = "pathwise"
    biased: str = ""
    severity: Severity | None = None


class GroupStd(Case, frozen=True):
    """The penalty goes through a group-wise division by the standard deviation.

    `switch` set to `switched_off` turns that off where it can be.
    """

    switch: str = ""
    switched_off: Plain = None


class RaisesCase(Case, frozen=True):
    raises: str = ""


class EstimatorChoice(Case, frozen=True):
    """`setting` names the setting whose vocabulary decides, else `fixed`."""

    setting: str = ""
    fixed: EstimatorName = "unknown"


class CoefficientChoice(Case, frozen=True):
    setting: str = ""
    fixed: float | None = None
    scale: float = 1.0


class TermRule(Case, frozen=True):
    """One KL term that the trainer may add.  `when` says when it is switched on; in each list the first case that holds counts."""

    id: str = ""
    placement: Placement = "loss"
    estimator: tuple[EstimatorChoice, ...] = ()
    coefficient: tuple[CoefficientChoice, ...] = ()
    gradient: tuple[GradientCase, ...] = ()
    ignored: tuple[Case, ...] = ()
    raises: tuple[RaisesCase, ...] = ()
    group_std: tuple[GroupStd, ...] = ()
    length_averaged: tuple[Case, ...] = ()
    negative_coefficient: Literal["used", "off"] = "used"
    reference_at_zero: tuple[Case, ...] = ()  # the reference model is run although the coefficient is 0
    facts: tuple[Case, ...] = ()


class Fault(Case, frozen=True):
    """A combination that the framework refuses or that does not do what it says; `rule` is the finding it is."""

    rule: str = "KLA206"
    setting: str = ""
    raises: str = ""
    stops: bool = True
    instead: str = ""


class Dropped(Case, frozen=True):
    """Arguments that the class which takes another's place does not know in these versions."""

    names: tuple[str, ...] = ()


class CodeChange(Struct, frozen=True):
    """What must change in the Python code that makes a trainer, by the last names of classes.

    `trainer` is called there once with the configuration; `classes` are renamed, and `becomes` is then the id of the trainer in the
    rules.  `dropped` are arguments of the configuration, `refused` arguments of the trainer, that the new classes do not take.
    `template` is a file of rules/templates with one class, which is put before the call and takes the trainer's place; the coefficient
    is given to it as `coefficient`, and the set-up is then what the template's class makes of it.
    """

    trainer: str
    classes: Mapping[str, str] = field(default_factory=dict)
    becomes: str = ""
    dropped: tuple[Dropped, ...] = ()
    refused: tuple[str, ...] = ()
    written_out: Mapping[str, Plain] = field(
        default_factory=dict
    )  # arguments whose default is another one in the new class
    template: str = ""
    coefficient: str = ""


class Recipe(Case, frozen=True):
    """How to get from a biased set-up to `target`, in settings (by id; the spelling follows the version).  First that holds counts.

    `set` gives new values, `coefficient` the setting that takes over the coefficient in force, `remove` settings that become dead or
    forbidden, `group_std` the further settings that keep the penalty out of group-std normalisation.  `impossible` says why there is
    no such recipe here, and what can be done instead.  A recipe with a name for `choice` counts only where the user makes that choice.
    """

    target: Literal["k1-in-reward", "k2-in-loss", "straight-through", "importance-weighted", "no-kl"] = "k1-in-reward"
    set: Mapping[str, Plain] = field(default_factory=dict)
    coefficient: str = ""
    remove: tuple[str, ...] = ()
    group_std: Mapping[str, Plain] = field(default_factory=dict)
    safety: Literal["safe", "unsafe"] = "safe"
    explanation: str = ""
    impossible: str = ""
    choice: str = ""
    code: CodeChange | None = None


class ShippedConfig(Case, frozen=True):
    """Another config that ships beside the primary one: the defaults of the settings hold for it as well."""

    name: str = ""


class EntryPoint(Case, frozen=True):
    """What starts the trainer.  `scripts` are path endings; `programs` are leading words (`trl grpo`)."""

    modules: tuple[str, ...] = ()  # may be patterns: `examples.train.*`
    unless: tuple[str, ...] = ()  # patterns of modules and script paths that do not train, although they fit otherwise
    scripts: tuple[str, ...] = ()
    programs: tuple[tuple[str, ...], ...] = ()
    uses: tuple[str, ...] = ()  # a script of the tree that parses its arguments into one of these classes
    system: System = "hydra"
    folder: str = ""
    config: str = ""
    configs: tuple[ShippedConfig, ...] = ()  # other primary configs in `folder`
    config_flag: str = ""
    requires: tuple[str, ...] = ()  # words of which one must stand among the arguments
    needs: Mapping[str, Plain] = field(
        default_factory=dict
    )  # flag -> values: the launch is of this trainer only with these


class ConfigSignature(Case, frozen=True):
    """Dotted keys that make a file of its own a set-up of this trainer: all of `all_of` and one of `any_of`, with values as `when` says."""

    all_of: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()
    skip_paths: tuple[str, ...] = ()


class ConfigClass(Case, frozen=True):
    """Python classes whose keywords or fields are the settings, with values as `when` says."""

    names: tuple[str, ...] = ()
    prefix: str = ""
    only_with: tuple[str, ...] = ()  # parts of a configuration: they count only where they set one of these settings


class SourceDefaults(Case, frozen=True):
    """Where the framework's own source in the tree says its defaults.

    `needed_by` names options that other files of it read as `args.NAME`, each with such a file: a program whose parser does not
    declare one stops there.
    """

    kind: Literal["dataclass", "arguments"] = "dataclass"
    path: str = ""
    symbol: str = ""
    prefix: str = ""
    needed_by: Mapping[str, Plain] = field(default_factory=dict)


class Trainer(Case, frozen=True):
    id: str = ""
    title: str = ""
    entry_points: tuple[EntryPoint, ...] = ()
    config_files: tuple[ConfigSignature, ...] = ()
    classes: tuple[ConfigClass, ...] = ()
    source_defaults: tuple[SourceDefaults, ...] = ()
    settings: Mapping[str, SettingSpec] = field(default_factory=dict)
    vocabularies: Mapping[str, Vocabulary] = field(default_factory=dict)
    terms: tuple[TermRule, ...] = ()
    faults: tuple[Fault, ...] = ()
    stale: tuple[Case, ...] = ()
    recipes: tuple[Recipe, ...] = ()
    algorithm: str = ""  # the setting that names the algorithm
    algorithm_name: str = ""
    lookalikes: tuple[str, ...] = ()
    flag_prefixes: bool = False
    dashes: Literal["exact", "either"] = "exact"
    unknown_flags: Literal["refused", "ignored"] = "ignored"
    typed: bool = False  # booleans are parsed (on/off/0/1), not tested for truth as text
    strict_names: bool = False


class VersionFile(Struct, frozen=True):
    """`path` below the vendored root; `pattern` has one group, the version (default: the first line)."""

    path: str
    pattern: str = ""


class VersionBound(Struct, frozen=True):
    """What a key or text in the vendored source says of its version, whatever its version file says."""

    file: str
    has: str = ""
    lacks: str = ""
    contains: str = ""
    absent: bool = False
    at_least: Version | None = None
    at_most: Version | None = None


class Vendored(Struct, frozen=True):
    """`markers` are paths of which one must exist; the folder they hang from is the vendored root."""

    markers: tuple[str, ...] = ()
    version_files: tuple[VersionFile, ...] = ()
    bounds: tuple[VersionBound, ...] = ()
    unless: tuple[str, ...] = ()


class NeverExisted(Struct, frozen=True):
    """An API that circulates in guides but never was: `symbols` called with any of `keywords`."""

    symbols: tuple[str, ...]
    keywords: tuple[str, ...]
    instead: str
    source: str = ""


class Framework(Struct, frozen=True):
    id: str
    title: str
    repository: str
    distributions: tuple[str, ...]
    releases: tuple[Version, ...]
    release_names: tuple[str, ...]
    vendored: Vendored
    trainers: tuple[Trainer, ...]
    never_existed: tuple[NeverExisted, ...]
    keywords: tuple[str, ...]
    path: str = ""
    derived_from: str = ""  # a fork with the same entry points: where nothing tells the two apart, the original counts

    @property
    def newest(self) -> str:
        return self.release_names[-1] if self.release_names else "0"

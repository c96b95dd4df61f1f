"""One default of a defaults list at its place: which config it names, and at which package that goes."""

from __future__ import annotations

from msgspec import Struct

from klaudit.frameworks.compose.config_files import ConfigFile, VersionBase


class Default(Struct, eq=False):
    """A choice from a config group, or (`group` None) a config by its path, which is then the `value`.

    `folder` and `parent_package` are those of the config in whose list it stands.  `header` is the package that the chosen file's
    own header names.  `children` are the defaults of that file, `_self_` among them.
    """

    group: str | None
    value: str | list[str] | None
    package: str | None = None
    version_base: VersionBase = "1.3"
    is_optional: bool = False
    is_override: bool = False
    is_primary: bool = False
    is_appended: bool = False
    is_deleted: bool = False
    folder: str = ""
    parent_package: str = ""
    header: str | None = None
    file: ConfigFile | None = None
    children: list[Default] | None = None

    def __post_init__(self) -> None:
        if self.package == "_here_":
            self.package = ""

    @property
    def is_self(self) -> bool:
        return self.value == "_self_"

    @property
    def name(self) -> str | None:
        """The chosen option; for a config by path, the last part of it."""
        if self.group is None:
            return str(self.value).rpartition("/")[2]
        return None if self.value is None else str(self.value)

    @property
    def is_interpolation(self) -> bool:
        text = self.config_path if self.group is None else self.value
        return isinstance(text, str) and "${" in text

    @property
    def group_path(self) -> str:
        """The folder, relative to the search path, in which the chosen config stands."""
        relative = self._relative_group
        return relative if self._is_absolute or not self.folder else f"{self.folder}/{relative}".rstrip("/")

    @property
    def config_path(self) -> str:
        if self.group is not None:
            return f"{self.group_path}/{self.value}"
        path = str(self.value)
        if path.startswith("/"):
            return path[1:]
        return f"{self.folder}/{path}" if self.folder else path

    @property
    def override_key(self) -> str:
        """How an override addresses this choice: its group, and the package where that is not the group's own."""
        package = self.final_package(with_header=False)
        if package == self.group_path.replace("/", "."):
            return self.group_path
        return f"{self.group_path}@{package or '_global_'}"

    def place(self, folder: str, parent_package: str) -> None:
        self.folder, self.parent_package = folder, parent_package
        if self.package is not None and "_group_" in self.package:
            self.package = "_global_." + self.package.replace("_group_", self.group_path.replace("/", "."))

    def set_header(self, package: str | None) -> None:
        """The `# @package` of the chosen file, which is always absolute."""
        if package is None or (self.version_base == "1.1" and package == "_group_"):
            return
        if package != "_global_" and not package.startswith("_global_."):
            package = f"_global_.{package}" if package else "_global_"
        if self.version_base == "1.1":
            package = package.replace("_group_", self.group_path.replace("/", "."))
        self.header = package

    def final_package(self, *, with_header: bool = True) -> str:
        """Where the content goes: below the parent's package, unless `_global_` starts again from the top."""
        package = self.package
        if package is None and with_header:
            package = self.header
        if package is None:
            package = self._relative_group.replace("/", ".")
        if self.version_base == "1.1" and "_name_" in package and self.name is not None:
            package = package.replace("_name_", self.name)
        full = f"{self.parent_package}.{package}" if self.parent_package and package else self.parent_package or package
        at = full.rfind("_global_")
        return full if at == -1 else full[at + len("_global_") + 1 :]

    @property
    def _is_absolute(self) -> bool:
        return str(self.value if self.group is None else self.group).startswith("/")

    @property
    def _relative_group(self) -> str:
        path = str(self.value if self.group is None else self.group).removeprefix("/")
        return path.rpartition("/")[0] if self.group is None else path

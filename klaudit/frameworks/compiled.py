"""Framework files as their finished records in one file, so that an installed klaudit reads no YAML to know them.

The file is made when a wheel is built and lies beside the folder of the YAML files.  These stay what counts: the records of a file are
taken only while that file still holds the very bytes they were made from, so that one which somebody edits, adds or removes is read as
it is.  In a checkout, where rules are written, there is no such file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from zlib import crc32

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from packaging.version import Version

from klaudit import __version__
from klaudit.frameworks.rules import Framework
from klaudit.frameworks.versions import parse_version

NAME = "frameworks.msgpack"  # in the folder of the rules


class _File(Struct, frozen=True, array_like=True):
    """One framework file.  The checksum is against accidents: whoever may write here may write klaudit itself."""

    size: int
    checksum: int
    framework: Framework


class Compiled(Struct, frozen=True):
    """`klaudit` is the version whose records these are; `files` has them by the name of their file, without its folder."""

    klaudit: str
    files: Mapping[str, _File]

    def framework(self, name: str, data: bytes) -> Framework | None:
        """The records of the file of that name, if these are its bytes; their path is the bare name."""
        file = self.files.get(name)
        return file.framework if file is not None and (file.size, file.checksum) == _mark(data) else None


_NOTHING = Compiled(__version__, {})


def encode(frameworks: Mapping[str, tuple[bytes, Framework]]) -> bytes:
    """The bytes of a compiled file; `frameworks` has by name of the file its bytes and its records.

    Raises ValueError for records that would not come out of it as they went in.
    """
    files = {
        name: _File(*_mark(data), replace(framework, path=name))
        for name, (data, framework) in sorted(frameworks.items())
    }
    compiled = Compiled(__version__, files)
    encoder = msgspec.msgpack.Encoder(enc_hook=_encoded)
    encoded = encoder.encode(compiled)
    decoded = _decode(encoded)
    if decoded != compiled or encoder.encode(decoded) != encoded:  # equal, and with each mapping in its order
        raise ValueError("the records of the rules do not survive compilation")
    return encoded


def read_compiled(rules: Path) -> Compiled:
    """What is compiled of a folder of rules: nothing where there is no such file, or only one of another klaudit."""
    try:
        compiled = _decode((rules / NAME).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return _NOTHING
    return compiled if compiled.klaudit == __version__ else _NOTHING


def _mark(data: bytes) -> tuple[int, int]:
    return len(data), crc32(data)


def _decode(data: bytes) -> Compiled:
    """Raises MsgspecError."""
    return msgspec.msgpack.Decoder(Compiled, dec_hook=_decoded).decode(data)


def _encoded(value: object) -> str:
    if isinstance(value, Version):
        return str(value)
    raise NotImplementedError(f"no form for a {type(value).__name__}")


def _decoded(kind: type, text: str) -> Version:
    if kind is Version:
        return parse_version(text)
    raise NotImplementedError(f"no form for a {kind.__name__}")

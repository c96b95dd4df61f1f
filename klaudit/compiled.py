"""Rule files as their finished records in one file, so that an installed klaudit reads no YAML to know them.

Such a file is made when a wheel is built, and lies beside the folder of the YAML files.  These stay what counts: the record of a file is
taken only while that file still holds the very bytes it was made from, so that one which somebody edits, adds or removes is read as it
is.  In a checkout, where rules are written, there is nothing compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar
from zlib import crc32

import msgspec
from msgspec import Struct
from packaging.version import Version

from klaudit import __version__
from klaudit.frameworks.versions import parse_version

T = TypeVar("T")

SUFFIX = ".msgpack"  # behind the name of the folder of the YAML files


class _File(Struct, Generic[T], frozen=True, array_like=True):
    """One YAML file.  The checksum is against accidents: whoever may write here may write klaudit itself."""

    size: int
    checksum: int
    record: T


class Compiled(Struct, Generic[T], frozen=True):
    """`klaudit` is the version whose records these are; `files` has them by the name of their file, without its folder."""

    klaudit: str
    files: Mapping[str, _File[T]]

    def record(self, name: str, data: bytes) -> T | None:
        """The record of the file of that name, if these are its bytes."""
        file = self.files.get(name)
        return file.record if file is not None and (file.size, file.checksum) == _mark(data) else None


def encode(records: Mapping[str, tuple[bytes, T]], kind: type[T]) -> bytes:
    """The bytes of a compiled file; `records` has by name of the YAML file its bytes and its record.

    Raises ValueError for records that would not come out of it as they went in.
    """
    files = {name: _File(*_mark(data), record) for name, (data, record) in sorted(records.items())}
    compiled = Compiled(__version__, files)
    encoder = msgspec.msgpack.Encoder(enc_hook=_encoded)
    encoded = encoder.encode(compiled)
    try:
        decoded: Compiled[T] = _decode(encoded, kind)
    except msgspec.MsgspecError as error:
        raise ValueError(f"the records of the rules do not survive compilation: {error}") from None
    if decoded != compiled or encoder.encode(decoded) != encoded:  # equal, and with each mapping in its order
        raise ValueError("the records of the rules do not survive compilation")
    return encoded


def read_compiled(folder: Path, kind: type[T]) -> Compiled[T]:
    """What is compiled of a folder of YAML files: nothing where there is no such file, or only one of another klaudit."""
    try:
        compiled: Compiled[T] = _decode(folder.with_name(folder.name + SUFFIX).read_bytes(), kind)
    except (OSError, msgspec.MsgspecError, RecursionError):  # the last one: nested without end
        return Compiled(__version__, {})
    return compiled if compiled.klaudit == __version__ else Compiled(__version__, {})


def _mark(data: bytes) -> tuple[int, int]:
    return len(data), crc32(data)


def _decode(data: bytes, kind: Any) -> Compiled[T]:
    """Raises MsgspecError."""
    decoder: msgspec.msgpack.Decoder[Compiled[T]] = msgspec.msgpack.Decoder(Compiled[kind], dec_hook=_decoded)
    return decoder.decode(data)


def _encoded(value: object) -> str:
    if isinstance(value, Version):
        return str(value)
    raise NotImplementedError(f"no form for a {type(value).__name__}")


def _decoded(kind: type, text: str) -> Version:
    if kind is Version:
        return parse_version(text)
    raise NotImplementedError(f"no form for a {kind.__name__}")

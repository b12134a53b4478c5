# Copyright (c) 2026 KubeGPU contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
#
# PRIVATE to the collection: no stable interface for others.

"""TOML: reading that names the file, writing of plain data, and insertions that leave every other byte alone."""

from __future__ import annotations

import json
import platform
import re
import sys
import typing as t

from .._errors import KubegpuError

Table = dict[str, t.Any]


def _reader() -> t.Any:
    try:
        import tomllib

        return tomllib
    except ImportError:  # Python before 3.11
        pass
    try:
        import tomli

        return tomli
    except ImportError:
        raise KubegpuError(
            f"containerd's configuration cannot be read: {sys.executable} on this node is Python "
            f"{platform.python_version()}, which has no TOML reader (3.11 and later have one). Install tomli for it, "
            f"from the distribution's package python3-tomli or with '{sys.executable} -m pip install tomli'."
        ) from None


def decode(content: bytes, path: str) -> str:
    if content.startswith(b"\xef\xbb\xbf"):
        raise KubegpuError(
            f"{path} begins with a byte order mark, which containerd 2 refuses to read: remove its first three bytes."
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise KubegpuError(f"{path} is not UTF-8 (byte {exc.start}): containerd cannot read it.") from None


def parse(text: str, path: str) -> Table:
    reader = _reader()
    try:
        return t.cast(Table, reader.loads(text))
    except reader.TOMLDecodeError as exc:
        # The reader says what is wrong and where, for instance "Cannot declare (...) twice (at line 7, column 12)".
        raise KubegpuError(f"{path} is not valid TOML: {exc}. Nothing was changed.") from None


def emit(data: Table) -> str:
    """Plain data as TOML: keys sorted, so that equal data gives equal text."""
    return "\n".join(_table_lines(data, ())) + "\n"


def _table_lines(table: Table, path: tuple[str, ...]) -> t.Iterator[str]:
    inner = {key: value for key, value in sorted(table.items()) if isinstance(value, dict)}
    plain = {key: value for key, value in sorted(table.items()) if key not in inner}
    if path and (plain or not inner):
        yield ""
        yield f"[{'.'.join(map(_key, path))}]"
    for key, value in plain.items():
        yield f"{_key(key)} = {_value(value)}"
    for key, value in inner.items():
        yield from _table_lines(value, (*path, key))


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _string(key)


def _value(value: t.Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in sorted(value.items())) + "}"
    return str(value)  # an integer, a float or a date: Python's notation is TOML's


def _string(text: str) -> str:
    # JSON's escapes are TOML's, but for DEL, which TOML wants escaped as well.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def set_top_level(text: str, key: str, value: t.Any, path: str) -> str:
    """Gives a top-level key a value: in its own line where it has one, else in a line of its own at the top."""
    old = parse(text, path)
    if old.get(key) == value:
        return text
    assignment = f"{_key(key)} = {_value(value)}"
    if key in old:
        new = re.sub(
            rf"^([ \t]*{_spelled(key)}[ \t]*=[ \t]*)[^#\r\n]*?([ \t]*(?:#.*)?)$",
            rf"\g<1>{_value(value)}\g<2>",
            text,
            count=1,
            flags=re.MULTILINE,
        )
    else:
        # Beside the line that explains it, if the file has one commented out.
        hint = re.search(rf"^#[ \t]*{_spelled(key)}[ \t]*=.*(?:\n|\Z)", text, flags=re.MULTILINE)
        new = _insert_line(text, assignment, hint.end() if hint else 0)
    return _proven(new, {**old, key: value}, path, assignment)


def append_import(text: str, entry: str, path: str) -> str:
    """Appends to the top-level list `imports`, which is written below `version` where there is none."""
    old = parse(text, path)
    imports = old.get("imports")
    if imports is not None and not isinstance(imports, list):
        raise KubegpuError(f"{path}: imports is not a list. Nothing was changed.")
    assignment = f"imports = [{_string(entry)}]"
    if imports is None:
        version = re.search(rf"^[ \t]*{_spelled('version')}[ \t]*=.*(?:\n|\Z)", text, flags=re.MULTILINE)
        new = _insert_line(text, assignment, version.end() if version else 0)
    else:
        opening = re.search(rf"^[ \t]*{_spelled('imports')}[ \t]*=[ \t]*\[", text, flags=re.MULTILINE)
        new = _append_to_array(text, entry, opening.end()) if opening else text
    return _proven(new, {**old, "imports": [*(imports or []), entry]}, path, assignment)


def _spelled(key: str) -> str:
    return rf"""(?:{re.escape(key)}|"{re.escape(key)}"|'{re.escape(key)}')"""


def _proven(new: str, wanted: Table, path: str, assignment: str) -> str:
    """The insertion is found by looking at text; that it means what it should is what the reader says."""
    try:
        if parse(new, path) == wanted:
            return new
    except KubegpuError:
        pass
    raise KubegpuError(
        f"{path} is written in a way that this module does not dare to edit: "
        f"put '{assignment}' into it by hand, above every [table]."
    )


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _insert_line(text: str, line: str, at: int) -> str:
    if at and not text[:at].endswith("\n"):  # the last line has no line end
        return f"{text[:at]}{_line_end(text)}{line}{text[at:]}"
    return f"{text[:at]}{line}{_line_end(text)}{text[at:]}"


def _append_to_array(text: str, entry: str, start: int) -> str:
    """`start` is behind the opening bracket of an array of strings."""
    token = re.compile(r""""(?:[^"\\\n]|\\.)*"|'[^'\n]*'|,|\]|\#[^\n]*""")
    end, comma, indent = start, True, None
    for match in token.finditer(text, start):
        if match.group() == "]":
            break
        if match.group().startswith("#"):
            continue
        comma = match.group() == ","
        end = match.end()
        if not comma:
            before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
            indent = before if before.strip() == "" else None
    else:
        return text
    separator = "" if comma else ","
    if indent is None:  # the elements stand in the line of the bracket
        space = " " if end > start else ""
        return f"{text[:end]}{separator}{space}{_string(entry)}{text[end:]}"
    rest = text[end:]
    line = rest.find("\n") + 1
    # A closing bracket behind the last element would otherwise come before the new line.
    if "]" in rest[:line].partition("#")[0]:
        return f"{text[:end]}{separator} {_string(entry)}{rest}"
    return f"{text[:end]}{separator}{rest[:line]}{indent}{_string(entry)},{_line_end(text)}{rest[line:]}"


__all__ = ("Table", "append_import", "decode", "emit", "parse", "set_top_level")

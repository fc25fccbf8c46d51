"""Values that the audit takes parameters to have: `KERNEL.PARAMETER=VALUE`, by the parameter's name in C or PTX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ssmtool.audit.names import no_entry
from ssmtool.errors import SsmtoolError
from ssmtool.ptx.declarations import Variable
from ssmtool.ptx.function import Function
from ssmtool.ptx.opcode import TYPE_BITS

_FORM = re.compile(r"\s*(?P<key>\S+?)\s*=\s*(?P<value>-?(?:0[xX][0-9a-fA-F]+|[0-9]+))\s*")
# No parameter has more digits, and int() refuses thousands of them with an error of its own.
_DIGITS = 40
_EXAMPLE = "--assume fc_ssm_conv1d_silu_seq.conv_kernel=4"


@dataclass(frozen=True, slots=True)
class Assumption:
    """One value. `kernel` is a shell pattern over entry names, `text` how the user wrote it.

    An `optional` one may fit nothing: settings speak of the project's kernels, not of any file that is audited.
    """

    kernel: str
    parameter: str
    value: int
    text: str
    optional: bool = False


def parse_assumption(text: str) -> Assumption:
    """The assumption of one `--assume`. Raises SsmtoolError when it has another form."""
    match = _FORM.fullmatch(text)
    if match is None:
        raise SsmtoolError(f'"{text}" is not of the form KERNEL.PARAMETER=INTEGER', hint=_EXAMPLE)
    if len(match["value"]) > _DIGITS:
        raise SsmtoolError(f"{match['key']}: a value of {len(match['value'])} digits fits no parameter")
    # `int(..., 0)` would refuse the zeros in front of 007.
    base = 16 if "x" in match["value"].lower() else 10
    return make_assumption(match["key"], int(match["value"], base), text.strip())


def make_assumption(key: str, value: int, text: str | None = None) -> Assumption:
    """The assumption of a `KERNEL.PARAMETER` key, as settings hold it. Raises SsmtoolError without a dot in the key."""
    kernel, dot, parameter = key.rpartition(".")
    if not dot or not kernel or not parameter:
        raise SsmtoolError(f'the assumption "{key}" names no kernel and parameter: KERNEL.PARAMETER', hint=_EXAMPLE)
    return Assumption(kernel, parameter, value, text or f"{key} = {value}")


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of one entry: its PTX variables and, where known, their names in C."""

    variables: tuple[Variable, ...]
    c_names: tuple[str, ...] = ()

    @classmethod
    def of(cls, function: Function, c_names: Mapping[str, tuple[str, ...]]) -> Parameters:
        """Of an entry; C names that do not fit in number are not used."""
        names = c_names.get(function.name, ())
        return cls(function.params, names if len(names) == len(function.params) else ())

    def shown(self, index: int) -> str:
        """The name reports use: C's, else PTX's, of which compilers' `KERNEL_param_3` is cut to `param_3`."""
        if self.c_names:
            return self.c_names[index]
        name = self.variables[index].name
        return f"param_{index}" if name.endswith(f"_param_{index}") else name

    @property
    def names(self) -> tuple[str, ...]:
        """Every parameter's shown name, in order."""
        return tuple(self.shown(index) for index in range(len(self.variables)))

    def find(self, name: str) -> int | None:
        """Index of a parameter by its C name, its PTX name, or `param_N`."""
        if name in self.c_names:
            return self.c_names.index(name)
        for index, variable in enumerate(self.variables):
            if name in (variable.name, f"param_{index}", f"_param_{index}"):
                return index
        return None


@dataclass(frozen=True, slots=True)
class Assumed:
    """The assumptions about one entry: shown name -> value, and PTX name -> (bit pattern, bytes)."""

    shown: Mapping[str, int]
    patterns: Mapping[str, tuple[int, int]]

    def __bool__(self) -> bool:
        return bool(self.shown)


NOTHING = Assumed({}, {})


def resolve(assumptions: Iterable[Assumption], entries: Mapping[str, Parameters]) -> dict[str, Assumed]:
    """Entry name -> what is assumed about it; a later assumption replaces an earlier one.

    Raises SsmtoolError for an assumption that fits no entry or no parameter (it would otherwise change nothing and
    look as if it had), a value that does not fit the parameter, and a parameter that is not an integer or pointer.
    """
    found: dict[str, dict[int, int]] = {name: {} for name in entries}
    for assumption in assumptions:
        kernels = [name for name in entries if fnmatchcase(name, assumption.kernel)]
        if not kernels:
            if assumption.optional:
                continue
            raise SsmtoolError(f"{assumption.text}: {no_entry(assumption.kernel, entries)}")
        taken = False
        for name in kernels:
            index = entries[name].find(assumption.parameter)
            if index is not None:
                _check_value(assumption, entries[name].variables[index])
                found[name][index] = assumption.value
                taken = True
        if not taken and not assumption.optional:
            known = ", ".join(entries[kernels[0]].names)
            raise SsmtoolError(
                f"{assumption.text}: {kernels[0]} has no parameter {assumption.parameter}; it has: {known}"
            )
    return {name: _assumed(entries[name], values) if values else NOTHING for name, values in found.items()}


def _assumed(parameters: Parameters, values: Mapping[int, int]) -> Assumed:
    shown, patterns = {}, {}
    for index, value in sorted(values.items()):
        variable = parameters.variables[index]
        shown[parameters.shown(index)] = value
        patterns[variable.name] = (value & ((1 << 8 * variable.size) - 1), variable.size)
    return Assumed(shown, patterns)


def _check_value(assumption: Assumption, variable: Variable) -> None:
    type_ = variable.type or ""
    if variable.dims or variable.vector != 1 or type_[:1] not in ("u", "s", "b") or type_ not in TYPE_BITS:
        raise SsmtoolError(f"{assumption.text}: the parameter is not an integer or pointer (it is .{type_})")
    bits = TYPE_BITS[type_]
    if not -(1 << (bits - 1)) <= assumption.value < 1 << bits:
        raise SsmtoolError(f"{assumption.text}: {assumption.value} does not fit the {bits} bits of the parameter")

"""What a kernel may run besides itself: the `.func`s of its module, with the local memory each of them touches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ssmtool.audit.counts import callee
from ssmtool.audit.localmemory import LocalAccess, hands_out, local_accesses
from ssmtool.audit.paths import PathAnalysis
from ssmtool.audit.result import CalledFunction
from ssmtool.ptx import Function, Module

_NAME = re.compile(r"[A-Za-z_$%][\w$]*")


class Callees:
    """The `.func`s of a module, and what they call in turn.

    A local address lives as long as the call that made it, so only functions called meanwhile can get hold of one: in
    everything that may run below a function that hands local addresses out, every access without a state space counts
    as local. Variables that the module itself puts in `.local` belong to no call; handed out, they may be anywhere.
    """

    def __init__(self, module: Module) -> None:
        self._functions: Mapping[str, Function] = {function.name: function for function in module.functions}
        self._aliases = module.aliases
        self._funcs = {function.name for function in module.functions if function.kind == "func"}
        self._names: dict[str, set[str]] = {}
        self._module_locals = {
            variable.name: variable.size for variable in module.variables if variable.space == "local"
        }
        self._called_by: dict[str, tuple[list[str], bool]] = {}
        self._hands: dict[str, bool] = {}
        self._accesses: dict[tuple[str, bool], tuple[LocalAccess, ...]] = {}

    def accesses(self, entry: Function) -> tuple[LocalAccess, ...]:
        """The local accesses of the entry's own text."""
        names = frozenset(self._module_locals)
        handed = bool(names) and any(self._hands_out(name) for name in (entry.name, *self._below(entry)[0]))
        return local_accesses(entry, handed=handed, module_locals=names)

    def module_bytes(self, entry: Function, called: Iterable[CalledFunction]) -> int:
        """Bytes of the module's own `.local` variables that the entry, or what it may run, names."""
        if not self._module_locals:
            return 0
        texts = [entry.text, *(self._functions[function.name].text for function in called)]
        named = {word for text in texts for word in _NAME.findall(text)}
        return sum(size for name, size in self._module_locals.items() if name in named)

    def reached(self, entry: Function, analysis: PathAnalysis | None) -> tuple[tuple[CalledFunction, ...], bool]:
        """Functions that `entry` may run, and whether it may run others that are not in this text.

        One that is only called from dead blocks is marked as not executed.
        """
        everything, elsewhere = self._below(entry)
        if not everything:
            return (), elsewhere
        live = everything if analysis is None else self._closure(self._calls(entry, analysis)[0])
        handed = self._handed(entry, everything)
        found = []
        for name in everything:
            accesses = self._accesses_of(name, name in handed)
            loads = sum(access.kind == "load" for access in accesses)
            stores = len(accesses) - loads
            function = self._functions[name]
            found.append(CalledFunction(name, function.local_bytes, loads, stores, name in live))
        return tuple(found), elsewhere

    def _handed(self, entry: Function, everything: Mapping[str, None]) -> set[str]:
        """Functions that may get a local address of another."""
        handing = [name for name in (entry.name, *everything) if self._hands_out(name)]
        if handing and self._module_locals:
            return set(everything)
        handed: set[str] = set()
        for name in handing:
            handed |= self._below(self._functions[name])[0].keys()
        return handed

    def _below(self, function: Function) -> tuple[dict[str, None], bool]:
        """Functions that may run while `function` does, and whether others may."""
        names, elsewhere = self._calls(function)
        found = self._closure(names)
        return found, elsewhere or any(self._calls(self._functions[name])[1] for name in found)

    def _closure(self, names: Iterable[str]) -> dict[str, None]:
        found: dict[str, None] = {}
        work = list(names)
        while work:
            name = work.pop()
            if name not in found:
                found[name] = None
                work.extend(self._calls(self._functions[name])[0])
        return found

    def _calls(self, function: Function, analysis: PathAnalysis | None = None) -> tuple[list[str], bool]:
        """Functions called, and whether others are; with an analysis only from what may be executed.

        A call through a register may run any function of this text, and others. One whose address is taken counts as
        called, whatever the analysis.
        """
        if analysis is None and function.name in self._called_by:
            return self._called_by[function.name]
        names: dict[str, None] = {}
        elsewhere = False
        # One look at the distinct opcodes: most kernels call nothing.
        calling = any(opcode.startswith("call") for opcode in set(function.opcodes))
        for index, opcode in enumerate(function.opcodes if calling else ()):
            if not opcode.startswith("call") or (analysis is not None and not analysis.executed(index)):
                continue
            name = callee(function, index)
            if name is None:
                names |= {each.name: None for each in self._functions.values() if each.kind == "func"}
                elsewhere = True
            elif (name := self._aliases.get(name, name)) in self._functions:
                names[name] = None
            else:
                elsewhere = True
        # One that is named without being called has its address taken: whoever gets that may call it.
        named = self._named(function)
        if named:
            calls = (index for index, opcode in enumerate(function.opcodes) if opcode.startswith("call"))
            named = named - {callee(function, index) for index in calls}
            names |= dict.fromkeys(sorted(named))
        result = list(names), elsewhere
        if analysis is None:
            self._called_by[function.name] = result
        return result

    def _named(self, function: Function) -> set[str]:
        """The `.func`s that the function's text names, itself left out."""
        if function.name not in self._names:
            words = set(_NAME.findall(function.text)) if self._funcs else set()
            self._names[function.name] = (words & self._funcs) - {function.name}
        return self._names[function.name]

    def _hands_out(self, name: str) -> bool:
        if name not in self._hands:
            self._hands[name] = hands_out(self._functions[name], frozenset(self._module_locals))
        return self._hands[name]

    def _accesses_of(self, name: str, handed: bool) -> tuple[LocalAccess, ...]:
        key = (name, handed)
        if key not in self._accesses:
            names = frozenset(self._module_locals)
            self._accesses[key] = local_accesses(self._functions[name], handed=handed, module_locals=names)
        return self._accesses[key]

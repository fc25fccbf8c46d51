"""Names inside a function: which `%f12` is which register, in which scope."""

from __future__ import annotations

from dataclasses import dataclass, field

from ssmtool.ptx.declarations import Variable


@dataclass(slots=True)
class Scope:
    """What one `{ }` declares. `prefixes` are register ranges `%f<12>`, by prefix."""

    parent: int
    registers: dict[str, Variable] = field(default_factory=dict)
    prefixes: dict[str, Variable] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)

    def declare(self, variable: Variable) -> None:
        """Add a declaration; a later one of the same name and kind replaces the earlier."""
        if variable.space == "reg" or variable.space == "sreg":
            if variable.count is None:
                self.registers[variable.name] = variable
            else:
                self.prefixes[variable.name] = variable
        else:
            self.variables[variable.name] = variable

    def register(self, name: str) -> Variable | None:
        """The declaration of a register of that name in this scope."""
        found = self.registers.get(name)
        if found is None and self.prefixes:
            stem = name.rstrip("0123456789")
            # `%r1<5>` is a legal range whose prefix ends in a digit, hence every split is tried, longest first.
            for cut in range(len(name) - 1, len(stem) - 1, -1):
                ranged = self.prefixes.get(name[:cut])
                digits = name[cut:]
                canonical = len(digits) < 10 and (digits == "0" or digits[0] != "0")
                if ranged is not None and canonical and int(digits) < (ranged.count or 0):
                    return ranged
        return found

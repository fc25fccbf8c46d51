"""The PTX front end: text in, a model of every function out, nothing lost and nothing guessed."""

from __future__ import annotations

from ssmtool.ptx.errors import PtxSyntaxError
from ssmtool.ptx.function import Directive, Function, Header
from ssmtool.ptx.instruction import Instruction
from ssmtool.ptx.module import Module, Unknown, parse

__all__ = ["Directive", "Function", "Header", "Instruction", "Module", "PtxSyntaxError", "Unknown", "parse"]

"""Reading C and CUDA source: the kernels of a `.cu` file, and the name array of a loader with its count.

One file at a time, without a compiler: comments and `#if` groups are taken out first (`preprocess`), tree-sitter reads
the rest, and what the text does not decide is said to be undecided.
"""

from ssmtool.csource.counts import Count
from ssmtool.csource.elements import NameEntry
from ssmtool.csource.flags import defines_from_flags
from ssmtool.csource.kernels import KernelSource, Parameter, SourceKernel, find_kernels, read_kernels
from ssmtool.csource.names import NameArray, find_name_array

__all__ = [
    "Count",
    "KernelSource",
    "NameArray",
    "NameEntry",
    "Parameter",
    "SourceKernel",
    "defines_from_flags",
    "find_kernels",
    "find_name_array",
    "read_kernels",
]

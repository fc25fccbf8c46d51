"""ssmtool: build, audit and verify CUDA kernels that are kept as checked-in PTX."""

__version__ = "0.1.0"

"""Run PTX on the CPU: the executor, its numerics and its checkers."""

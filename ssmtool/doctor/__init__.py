"""What is on this machine, what of it does not fit together, and the command that mends each.

The standard library is enough: what ssmtool itself depends on may be the thing that is broken. `examine` in `run.py`
takes a `System` (`system.py`), the only way by which anything here learns about a machine.
"""

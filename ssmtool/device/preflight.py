"""Will this card and driver take this PTX? Asked before loading, because the driver answers with a bare number."""

from __future__ import annotations

import re

from ssmtool import ptx
from ssmtool.device.codes import describe
from ssmtool.device.drivers import KEPLER, dotted
from ssmtool.device.errors import BindingError, LoadError, RefusedPtxError
from ssmtool.device.interface import Properties
from ssmtool.settings_form import table

# sm_37, compute_75, sm_90a (that very card only), sm_100f (its family)
_TARGET = re.compile(r"(?:sm|compute)_(\d+)(\d)([af]?)")
# The driver's log about PTX for a newer GPU, under CUDA_ERROR_INVALID_PTX too.
_TOO_NEW = "SM version"
_PTX_IS_WRONG = (200, 218, 300)
_UNSUPPORTED_PTX = 222


def check(module: ptx.Module, card: str, properties: Properties) -> None:
    """Raise LoadError for PTX that this card, or this driver, would not take."""
    wanted = _TARGET.fullmatch(module.target)
    if wanted is not None:
        target = (int(wanted[1]), int(wanted[2]))
        if target > properties.capability or (wanted[3] == "a" and target != properties.capability):
            only = ", and code for it runs on no other card" if wanted[3] == "a" else ""
            raise LoadError(
                f"{card} is {properties.target}, the PTX is for {module.target}{only}",
                hint=f'set target = "{properties.target}" in {table()} and run: ssmtool build',
            )
    if properties.ptx_isa is not None and module.version > properties.ptx_isa:
        raise unsupported(module, card, properties)
    if module.address_size != 64:
        raise LoadError(f"{card} takes 64-bit PTX; this one has .address_size {module.address_size}")


def unsupported(module: ptx.Module, card: str, properties: Properties) -> LoadError:
    """Error 222, explained."""
    driver = f" (CUDA {dotted(properties.driver)})" if properties.driver else ""
    takes = f", which takes {dotted(properties.ptx_isa)} and older" if properties.ptx_isa else ""
    text = (
        f"the PTX is of ISA {dotted(module.version)}, newer than the driver of {card}{driver} knows{takes}:"
        " loading it fails with error 222, CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
    )
    limit = properties.ptx_isa or KEPLER.ptx_isa
    rebuild = f'set max_ptx_isa = "{dotted(limit)}" in {table()} and run: ssmtool build'
    if properties.capability < (5, 0):
        text += f". No newer driver exists for this card: R{KEPLER.branch} is Kepler's last"
        return LoadError(text, code=_UNSUPPORTED_PTX, hint=rebuild)
    return LoadError(text, code=_UNSUPPORTED_PTX, hint=f"{rebuild}; or install a newer driver")


def refusal(error: BindingError, module: ptx.Module, card: str, properties: Properties) -> LoadError:
    """What the driver's own refusal to load means."""
    if error.code == _UNSUPPORTED_PTX:
        return unsupported(module, card, properties)
    text = f"{card} does not load the PTX: {describe(error.call, error.code, error.log)}"
    if error.code in _PTX_IS_WRONG and _TOO_NEW not in error.log:
        return RefusedPtxError(text, code=error.code, hint="ptxas names the line: ssmtool audit-ptx --resources")
    return LoadError(text, code=error.code)

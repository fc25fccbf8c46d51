"""One interface to whatever runs PTX: the CPU executor, and CUDA cards through three bindings of the driver.

    from ssmtool.device import open_devices
    with open_devices("cuda:0", require="sm_37") as (card,):
        card.load(ptx_text).launch("scale", grid=4, block=128, args=[y, x, 2.5, y.size])

Arguments are those of `ssmtool.execute.Module.launch`. NumPy is imported when the first of these names is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ssmtool.lazy import lazy_names

if TYPE_CHECKING:
    from ssmtool.device.compare import Comparison, Difference, Launch, compare_devices
    from ssmtool.device.errors import DeviceError, LoadError, NoDeviceError, OutsideWriteError
    from ssmtool.device.interface import Device, DeviceModule, Launched, Properties
    from ssmtool.device.select import Devices, list_devices, open_devices, open_preferred, shares

_HOMES = {
    "Comparison": "compare",
    "Difference": "compare",
    "Launch": "compare",
    "compare_devices": "compare",
    "DeviceError": "errors",
    "LoadError": "errors",
    "NoDeviceError": "errors",
    "OutsideWriteError": "errors",
    "Device": "interface",
    "DeviceModule": "interface",
    "Launched": "interface",
    "Properties": "interface",
    "Devices": "select",
    "list_devices": "select",
    "open_devices": "select",
    "open_preferred": "select",
    "shares": "select",
}

__all__ = [
    "Comparison",
    "Device",
    "DeviceError",
    "DeviceModule",
    "Devices",
    "Difference",
    "Launch",
    "Launched",
    "LoadError",
    "NoDeviceError",
    "OutsideWriteError",
    "Properties",
    "compare_devices",
    "list_devices",
    "open_devices",
    "open_preferred",
    "shares",
]

__getattr__ = lazy_names(__name__, _HOMES)

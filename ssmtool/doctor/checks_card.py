"""The card and the kernel's side of the driver: what stands between a card in its slot and a driver that answers."""

from __future__ import annotations

from ssmtool.device.drivers import KEPLER, cuda_of_branch, dotted
from ssmtool.doctor.facts import Facts
from ssmtool.doctor.model import Result, ok, problem, unknown, warning

_R470 = f"sudo apt-get install -y nvidia-driver-{KEPLER.branch}-server && sudo reboot"
_SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_NO_CARD = "no kernel can be run on the card"


def _bad(facts: Facts, found: str, means: str | None, mend: str | None) -> Result:
    """A problem where somebody means to compute on the card, else a warning: a laptop may leave its card alone."""
    return (problem if facts.wants_card else warning)(found, means, mend)


def present(facts: Facts) -> Result:
    """The NVIDIA cards that are plugged in, by the PCI bus."""
    if facts.cards:
        return ok("; ".join(f"{card.name} at {card.address} ({card.driver or 'no driver'})" for card in facts.cards))
    if facts.gpus:
        return ok(f"the PCI bus cannot be read here; the driver shows {len(facts.gpus)}")
    if facts.system.folder("/sys/bus/pci/devices") is None:
        return ok("none that can be seen (this system has no PCI bus to read)")
    return ok("no NVIDIA card is plugged in")


def kepler_driver(facts: Facts) -> Result | None:
    """Whether the driver still knows Kepler."""
    card = facts.kepler
    if card is None or facts.branch is None:
        return None
    release = facts.module_release or facts.driver.release
    if facts.branch > KEPLER.branch:
        return problem(
            f"a {card.name} is plugged in, and the driver is {release}: R{KEPLER.branch} is the last that knows Kepler",
            'the card is not seen at all ("No devices were found", CUDA error 100)',
            f"sudo apt-get purge -y '^nvidia-.*' '^libnvidia-.*' && {_R470}",
        )
    cuda = cuda_of_branch(facts.branch)
    if facts.branch < KEPLER.branch:
        shown = f", which takes PTX of CUDA {dotted(cuda)}" if cuda else ""
        return warning(f"driver {release}{shown}", f"R{KEPLER.branch} takes PTX ISA {dotted(KEPLER.ptx_isa)}", _R470)
    return ok(f"driver {release}, of the last branch for Kepler: CUDA 11.4, PTX ISA <= {dotted(KEPLER.ptx_isa)}")


def nouveau(facts: Facts) -> Result | None:
    """Whether the free driver nouveau holds the card: CUDA cannot work with it."""
    held = [card for card in facts.cards if card.driver == "nouveau"]
    if not held and not (facts.cards and facts.modules and "nouveau" in facts.modules and not facts.module_release):
        return None
    name = held[0].name if held else facts.cards[0].name
    return _bad(
        facts,
        f"the kernel module nouveau holds the {name}",
        f"NVIDIA's driver cannot load beside it: {_NO_CARD}",
        "printf 'blacklist nouveau\\noptions nouveau modeset=0\\n' | sudo tee /etc/modprobe.d/blacklist-nouveau.conf"
        " && sudo update-initramfs -u && sudo reboot",
    )


def passed_through(facts: Facts) -> Result | None:
    """Whether the card was given to a virtual machine."""
    held = [card for card in facts.cards if card.driver in ("vfio-pci", "pci-stub")]
    if not held:
        return None
    return _bad(
        facts,
        f"the {held[0].name} at {held[0].address} is held by {held[0].driver}, for a virtual machine",
        f"this system's driver does not see it: {_NO_CARD}",
        "run ssmtool inside that machine, or take the card out of the vfio-pci ids (/etc/modprobe.d)",
    )


def container(facts: Facts) -> Result | None:
    """Whether this container was started without its host's cards."""
    if facts.container is None:
        return None
    hidden = facts.system.environ.get("NVIDIA_VISIBLE_DEVICES")
    devices = facts.system.folder("/dev") or []
    if any(name.startswith("nvidia") and name[6:].isdecimal() for name in devices):
        return ok(f"a container ({facts.container}) with {sum(_is_card(name) for name in devices)} of the host's cards")
    if facts.module_release and hidden in ("", "void", "none"):
        return problem(
            f"a container with NVIDIA_VISIBLE_DEVICES={hidden or 'empty'}, which keeps all of the host's cards out",
            _NO_CARD,
            "start it with -e NVIDIA_VISIBLE_DEVICES=all --gpus all",
        )
    if facts.module_release:
        return problem(
            f"a container without cards, on a host whose NVIDIA driver is {facts.module_release}",
            f"it was started without --gpus, so it has no /dev/nvidia*: {_NO_CARD}",
            "docker run --gpus all ... (needs nvidia-container-toolkit on the host)",
        )
    return ok(f"a container ({facts.container}), on a host without NVIDIA's driver")


def kernel_module(facts: Facts) -> Result | None:
    """Whether NVIDIA's kernel module is loaded, and why it may not be."""
    if facts.module_release:
        return ok(f"nvidia {facts.module_release}")
    if not facts.cards:
        return None
    if nouveau(facts) or passed_through(facts):
        return unknown("not loaded, for the reason above")
    name = facts.cards[0].name
    boot = facts.system.read(_SECURE_BOOT)
    install = _R470 if facts.kepler else "sudo ubuntu-drivers install && sudo reboot"
    if facts.system.which("nvidia-smi") is None and not facts.driver.opened:
        return _bad(facts, f"a {name} is plugged in, and no NVIDIA driver is installed", _NO_CARD, install)
    if boot is not None and boot.endswith("\x01"):
        return _bad(
            facts,
            f"a {name} is plugged in, the driver is installed, and its kernel module is not loaded; Secure Boot is on",
            f"the kernel refuses a module that is not signed with a key it knows: {_NO_CARD}",
            "sudo mokutil --import /var/lib/shim-signed/mok/MOK.der && sudo reboot   # or turn Secure Boot off",
        )
    return _bad(
        facts,
        f"a {name} is plugged in, the driver is installed, and its kernel module is not loaded",
        f"most often it was not built for this kernel after an update: {_NO_CARD}",
        "sudo apt-get install -y linux-headers-$(uname -r) && sudo dkms autoinstall && sudo modprobe nvidia",
    )


def device_files(facts: Facts) -> Result | None:
    """Whether /dev/nvidia* are there, and this user may use them."""
    if not facts.module_release:
        return None
    names = facts.system.folder("/dev") or []
    cards = [name for name in names if _is_card(name)]
    if not cards:
        if facts.container:
            return unknown("no /dev/nvidia0: see card/container")
        if kepler_driver(facts) is not None and (facts.branch or 0) > KEPLER.branch:
            return unknown("no /dev/nvidia0: see card/driver-branch")
        return problem(
            "the kernel module is loaded, and there is no /dev/nvidia0", _NO_CARD, "sudo nvidia-modprobe -c 0"
        )
    for name in [*cards, "nvidiactl", "nvidia-uvm"]:
        path = f"/dev/{name}"
        access = facts.system.access(path)
        if access is None:
            mend = "sudo modprobe nvidia-uvm && sudo nvidia-modprobe -u -c 0"
            return problem(f"{path} is missing", f"CUDA does not start without it: {_NO_CARD}", mend)
        if not (access.readable and access.writable):
            user = facts.system.place().user
            by_group = access.mode & 0o060 == 0o060 and access.group != "root"
            mend = (
                f'sudo usermod -aG {access.group} "$USER"   # then log in again'
                if by_group
                else f"sudo chmod 0666 {path}"
            )
            shown = f"{path} is {access.owner}:{access.group} {access.mode:04o}"
            return problem(
                f"{shown}, and {user} may not use it", f"the driver shows no card to {user}: {_NO_CARD}", mend
            )
    return ok(f"{', '.join(cards)}, nvidiactl and nvidia-uvm can be used")


def _is_card(name: str) -> bool:
    return name.startswith("nvidia") and name[6:].isdecimal()

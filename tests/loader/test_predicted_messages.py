"""What `ssmtool registry` says the user would read is, to the letter, what the compiled loader prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ssmtool.csource import find_name_array, read_kernels
from ssmtool.registry import RegistryReport, check_registry, recognise_loader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.loader.conftest import Workshop

PATH = "kernels/fc_cuda.c"


def predict(workshop: Workshop, loader: str, entries: Sequence[str]) -> RegistryReport:
    kernels = workshop.root / "kernels"
    source = kernels / "ssm_gated_delta.cu"
    data = loader.encode()
    return check_registry(
        module_name="ssm_gated_delta",
        source=read_kernels(source.read_text("utf-8"), source, defines={}),
        header_entries=entries,
        header_path="generated/fc_cuda_ptx.h",
        constant="FC_PTX_SSM_GATED_DELTA",
        loader=find_name_array(data, PATH, "ssm_names", "fc_load_functions"),
        kind=recognise_loader(data, [(kernels / "fc_cuda.h", (kernels / "fc_cuda.h").read_bytes())]),
    )


def printed(workshop: Workshop, name: str, loader: str, kernels: dict[str, str]) -> str:
    """The error text of the compiled loader; `status N cuda N` stands before it."""
    host = workshop.host(name, workshop.header(workshop.ptx(kernels)), loader=loader)
    output = host.run("fails").output
    return output.split("\n", 1)[1].rstrip("\n")


@pytest.mark.parametrize("index", [0, 7, 14])
def test_a_kernel_the_module_lacks(workshop: Workshop, contract: dict[str, str], loader_text: str, index: int) -> None:
    del contract[list(contract)[index]]
    simulation = predict(workshop, loader_text, list(contract)).simulation
    assert simulation is not None
    assert simulation.when == "stopped"
    assert len(simulation.loaded) == index
    assert simulation.message == printed(workshop, f"lacks-{index}", loader_text, contract)


@pytest.mark.parametrize("symbol", ["fc_sigmoid_fast", "_Z10fc_sigmoidPfi"])
def test_a_kernel_under_another_symbol(
    workshop: Workshop, contract: dict[str, str], loader_text: str, symbol: str
) -> None:
    renamed = {symbol if name == "fc_sigmoid" else name: types for name, types in contract.items()}
    simulation = predict(workshop, loader_text, list(renamed)).simulation
    assert simulation is not None
    assert simulation.message == printed(workshop, f"renamed-{symbol}", loader_text, renamed)


@pytest.mark.parametrize("count", [0, 13, 14, 16])
def test_a_count_that_is_not_the_number_of_names(
    workshop: Workshop, contract: dict[str, str], loader_text: str, count: int
) -> None:
    loader = loader_text.replace("ssm_names, 15,", f"ssm_names, {count},")
    assert loader != loader_text
    simulation = predict(workshop, loader, list(contract)).simulation
    assert simulation is not None
    assert simulation.when == "refused"
    assert simulation.loaded == ()
    assert simulation.message == printed(workshop, f"count-{count}", loader, contract)


def test_names_in_another_order(workshop: Workshop, contract: dict[str, str], loader_text: str) -> None:
    first, second = '    "fc_sigmoid",\n', '    "fc_ssm_decay_gate",\n'
    loader = loader_text.replace(first + second, second + first)
    assert loader != loader_text
    report = predict(workshop, loader, list(contract))
    assert report.simulation is not None
    assert report.simulation.message == printed(workshop, "order", loader, contract)
    assert "registry/wrong-order" in {finding.rule for finding in report.findings}


def test_a_deleted_name_does_not_compile(workshop: Workshop, contract: dict[str, str], loader_text: str) -> None:
    loader = loader_text.replace('    "fc_sigmoid",\n', "")
    simulation = predict(workshop, loader, list(contract)).simulation
    assert simulation is not None
    assert simulation.when == "compile"
    assert simulation.message is not None
    said = workshop.compile("deleted", workshop.header(workshop.ptx(contract)), loader=loader)
    assert said.returncode != 0
    reason = simulation.message.split('"')[1]
    assert reason in said.stderr


def test_a_sixteenth_name_loads_without_a_constant(
    workshop: Workshop, contract: dict[str, str], loader_text: str
) -> None:
    contract["fc_new"] = "pi"
    loader = loader_text.replace("};\n", '    "fc_new",\n};\n', 1).replace("ssm_names, 15,", "ssm_names, 16,")
    report = predict(workshop, loader, list(contract))
    assert report.simulation is not None
    assert report.simulation.when == "loaded"
    assert "registry/no-constant" in {finding.rule for finding in report.findings}
    host = workshop.host("sixteen", workshop.header(workshop.ptx(contract)), loader=loader)
    assert host.run("all").status == 0

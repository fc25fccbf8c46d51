"""`ssmtool init`: settings for a tree that has none, good enough to build with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conftest import ROOT, Run, snapshot
from ssmtool.discover import discover
from ssmtool.project import LoaderSettings, find_project

KERNEL = 'extern "C" __global__ void scale(float *x) { x[0] = 1; }\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The product's source, loader and header, without settings."""
    folder = tmp_path / "tree"
    folder.mkdir()
    for name in ("kernels", "generated"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


def test_the_products_own_settings_are_found_again(tree: Path, run: Run) -> None:
    assert run(tree, "init").code == 0
    written, ours = find_project(tree).settings, find_project(ROOT).settings
    assert written.module == ours.module  # the second module's names stand in a private header of the loader
    assert (written.header, written.target) == (ours.header, ours.target)
    assert run(tree, "build", "--check").code == 0


def test_a_pyproject_keeps_what_it_held(tree: Path, run: Run) -> None:
    (tree / "pyproject.toml").write_text('[project]\nname = "host"')
    assert run(tree, "init").code == 0
    text = (tree / "pyproject.toml").read_text()
    assert text.startswith('[project]\nname = "host"\n\n# Settings of ssmtool.')
    assert "[[tool.ssmtool.module]]" in text
    assert not (tree / "ssmtool.toml").exists()


def test_settings_that_are_there_are_not_touched(tree: Path, run: Run) -> None:
    run(tree, "init")
    before = snapshot(tree)
    ran = run(tree, "init")
    assert ran.code == 2
    assert "has settings already" in ran.err
    assert snapshot(tree) == before


def test_print_writes_nothing(tree: Path, run: Run) -> None:
    before = snapshot(tree)
    ran = run(tree, "init", "--print")
    assert ran.code == 0
    assert 'source = "kernels/ssm_gated_delta.cu"' in ran.out
    assert snapshot(tree) == before


def test_a_tree_without_kernels_says_so(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.cu").write_text("int not_a_kernel;\n")
    ran = run(tmp_path, "init")
    assert ran.code == 2
    assert 'no .cu file with an extern "C" __global__ function' in ran.err


def test_a_kernel_without_a_loader_gets_a_commented_table(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.cu").write_text(KERNEL)
    assert run(tmp_path, "init").code == 0
    assert "# [module.loader]" in (tmp_path / "ssmtool.toml").read_text()
    assert find_project(tmp_path).settings.module[0].loader is None


def test_a_source_that_cannot_be_read_is_passed_over_and_named(tree: Path, run: Run) -> None:
    (tree / "kernels/bad.cu").write_text("__global__", encoding="utf-16")
    ran = run(tree, "init")
    assert ran.code == 0
    assert "kernels/bad.cu was left out" in ran.err


@pytest.mark.parametrize("text", ["tool = 3\n", "tool = {x = 1}\n"])
def test_a_pyproject_that_takes_no_table_is_left_as_it_is(tree: Path, run: Run, text: str) -> None:
    (tree / "pyproject.toml").write_text(text)
    before = snapshot(tree)
    ran = run(tree, "init")
    assert ran.code == 2
    assert "left as it is" in ran.err
    assert snapshot(tree) == before


@pytest.mark.parametrize(
    "settings",
    [
        "[tool.ssmtool]\n",
        'tool.ssmtool.header = "x.h"\n',
        'tool = {ssmtool = {header = "x.h"}}\n',
        '[tool]\nssmtool = {header = "x.h"}\n',
        '["tool"."ssmtool"]\nheader = "x.h"\n',
    ],
)
def test_settings_in_any_spelling_are_settings(tree: Path, run: Run, settings: str) -> None:
    (tree / "pyproject.toml").write_text(settings)
    before = snapshot(tree)
    ran = run(tree, "init")
    assert ran.code == 2
    assert "has settings already, and they name no module" in ran.err
    assert snapshot(tree) == before


def test_crlf_stays_crlf(tree: Path, run: Run) -> None:
    (tree / "pyproject.toml").write_bytes(b'[project]\r\nname = "host"\r\n')
    assert run(tree, "init").code == 0
    data = (tree / "pyproject.toml").read_bytes()
    assert data.count(b"\n") == data.count(b"\r\n") > 10
    assert run(tree, "build", "--check").code == 0


@pytest.mark.parametrize("data", [b'[project]\nname = "\xe9"\n', "[project]\n".encode("utf-16"), b"a = 1\n\0\n"])
def test_a_pyproject_that_is_no_text_is_left_as_it_is(tree: Path, run: Run, data: bytes) -> None:
    (tree / "pyproject.toml").write_bytes(data)
    before = snapshot(tree)
    ran = run(tree, "init")
    assert ran.code in (1, 2)
    assert ran.err.count("error:") == 1
    assert "pyproject.toml" in ran.err
    assert snapshot(tree) == before


@pytest.mark.parametrize(
    "loader",
    [
        'static constexpr std::array<const char *, 1> kNames = {\n    "k",\n};\n'
        "int load() { return load_all(PTX_K, kNames.data(), out, (int)kNames.size()); }\n",
        'static constexpr std::array<const char *, 1> kNames{{"k"}};\n'
        "int load() { return load_all(PTX_K, kNames.data(), out, (int)kNames.size()); }\n",
        'static const char *const kNames[] = {"k"};\nint load() { return load_all(PTX_K, kNames, out, 1); }\n',
    ],
)
def test_a_loader_with_its_count_elsewhere_and_the_text_first_is_adopted_as_it_is(
    tmp_path: Path, run: Run, loader: str
) -> None:
    (tmp_path / "k.cu").write_text('extern "C" __global__ void k(float *x) { x[0] = 1; }\n')
    (tmp_path / "load.cpp").write_text('#include <array>\n#include "gen/k_ptx.h"\n' + loader)
    assert run(tmp_path, "init").code == 0
    settings = find_project(tmp_path).settings
    (module,) = settings.module
    assert (settings.header, module.constant) == ("gen/k_ptx.h", "PTX_K")
    assert settings.baseline == "gen/audit-baseline.json"
    assert module.loader == LoaderSettings(path="load.cpp", array="kNames", function="load_all", count_argument=3)
    assert run(tmp_path, "build").code == 0


def test_other_peoples_folders_are_not_looked_into(tmp_path: Path, run: Run) -> None:
    names = [".git", "node_modules/x", "build", "cmake-build-debug", "myenv/lib/python3.11/site-packages/x", "out"]
    for name in names:
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "k.cu").write_text(KERNEL)
    (tmp_path / "myenv" / "pyvenv.cfg").touch()
    (tmp_path / "out" / "CMakeCache.txt").touch()
    assert run(tmp_path, "init").code == 2
    (tmp_path / "mine.cu").write_text(KERNEL)
    assert run(tmp_path, "init").code == 0
    assert [module.source for module in find_project(tmp_path).settings.module] == ["mine.cu"]


def test_a_huge_tree_is_cut_with_a_word(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(KERNEL)
    deep = tmp_path / "data" / "more"
    deep.mkdir(parents=True)
    for number in range(200):
        (deep / f"{number}.h").touch()
    guess = discover(tmp_path, max_names=100)
    assert [module.source for module in guess.modules] == ["k.cu"]
    assert guess.remarks == [
        "only the first 100 files and folders were looked at; run ssmtool init in the folder that holds the kernels"
    ]


def test_links_that_go_round_end(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "k.cu").write_text(KERNEL)
    (tmp_path / "a" / "b" / "up").symlink_to(tmp_path)
    (tmp_path / "self.cu").symlink_to("self.cu")
    (tmp_path / "again.cu").symlink_to("a/k.cu")
    (tmp_path / "loop.h").symlink_to("loop.h")
    assert run(tmp_path, "init").code == 0
    assert [module.source for module in find_project(tmp_path).settings.module] == ["a/k.cu"]


def test_a_name_that_is_no_utf_8_is_left_out(tmp_path: Path, run: Run) -> None:
    (tmp_path / "k.cu").write_text(KERNEL)
    (tmp_path / "b\udce9d.cu").write_text(KERNEL)
    ran = run(tmp_path, "init")
    assert ran.code == 0
    assert "b?d.cu was left out: its name is not UTF-8" in ran.err


def test_include_folders_are_found_through_headers_too(tmp_path: Path, run: Run) -> None:
    for name, text in {
        "kernels/k.cu": '#include <cuda_runtime.h>\n#include "near.cuh"\n#include <gdn/tree.cuh>\n' + KERNEL,
        "kernels/near.cuh": "",
        "include/gdn/tree.cuh": '#include "deep.h"\n#include "common.h"\n',
        "include/gdn/deep.h": "",
        "shared/common.h": "",
        "a/twice.h": "",
        "b/twice.h": "",
        "kernels/other.cu": '#include "twice.h"\n' + KERNEL.replace("scale", "other"),
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    ran = run(tmp_path, "init")
    assert ran.code == 0
    assert find_project(tmp_path).settings.include_dirs == ("include", "shared")
    assert "kernels/other.cu includes twice.h, which may be a/twice.h, b/twice.h" in ran.err


LOADER = """\
#include <cuda.h>
#include "util.h"
#include "../gen/kernels_ptx.h"
static const char *const names[] = { "scale" };
void start(void) { cuModuleLoadData(&module, MY_PTX); load(names, 1); }
"""


def test_the_header_and_the_constant_are_read_off_the_loader_before_they_exist(tmp_path: Path, run: Run) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/scale.cu").write_text(KERNEL)
    (tmp_path / "src/loader.c").write_text(LOADER)
    assert run(tmp_path, "init").code == 0
    settings = find_project(tmp_path).settings
    assert settings.header == "gen/kernels_ptx.h"
    assert settings.module[0].constant == "MY_PTX"
    assert settings.module[0].loader is not None
    assert settings.module[0].loader.function == "load"


HEADER_LOADER = """\
static const char *const names[] = { "scale" };
static_assert(sizeof(names) / sizeof(names[0]) == 1, "");
static void start(void) { load(names, 1); }
"""


@pytest.mark.parametrize("suffix", [".h", ".hpp", ".cuh", ".inc"])
def test_a_loader_in_a_header_is_found_and_its_text_read_off_the_file_that_includes_it(
    tmp_path: Path, run: Run, suffix: str
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "host").mkdir()
    (tmp_path / "src/scale.cu").write_text(KERNEL)
    (tmp_path / f"host/loader{suffix}").write_text(HEADER_LOADER)
    (tmp_path / "src/main.c").write_text(
        f'#include "../gen/kernels_ptx.h"\n#include "../host/loader{suffix}"\n'
        "int main(void) { return cuModuleLoadData(&module, MY_PTX); }\n"
    )
    assert run(tmp_path, "init").code == 0
    settings = find_project(tmp_path).settings
    assert settings.module[0].loader == LoaderSettings(path=f"host/loader{suffix}", array="names", function="load")
    assert (settings.header, settings.module[0].constant) == ("gen/kernels_ptx.h", "MY_PTX")
    assert run(tmp_path, "build").code == 0
    assert run(tmp_path, "registry").code == 0


def test_a_generated_header_is_no_loader_though_it_lists_its_kernels(tmp_path: Path, run: Run) -> None:
    text = '#define ARCH "\\t.target\\tsm_37"\nstatic const char MY_PTX[] =\n"\\t.visible .entry scale(\\n";\n'
    (tmp_path / "scale.cu").write_text(KERNEL)
    (tmp_path / "gen.h").write_text(text + HEADER_LOADER)
    ran = run(tmp_path, "init")
    assert ran.code == 0
    (module,) = find_project(tmp_path).settings.module
    assert (module.constant, module.loader) == ("MY_PTX", None)


def test_a_header_that_only_speaks_of_ptx_is_a_loader(tmp_path: Path, run: Run) -> None:
    (tmp_path / "scale.cu").write_text(KERNEL)
    (tmp_path / "loader.h").write_text("/* every .entry of x; config.target = 37 */\n" + HEADER_LOADER)
    assert run(tmp_path, "init").code == 0
    assert find_project(tmp_path).settings.module[0].loader is not None


@pytest.mark.parametrize("use", ["", "enum { COUNT = sizeof(labels) / sizeof(labels[0]) };\n"])
def test_a_longer_list_of_labels_in_a_header_does_not_replace_the_loader(tmp_path: Path, run: Run, use: str) -> None:
    (tmp_path / "k.cu").write_text(KERNEL + KERNEL.replace("scale", "forgotten"))
    (tmp_path / "labels.h").write_text('static const char *const labels[] = { "scale", "forgotten" };\n' + use)
    (tmp_path / "loader.c").write_text(LOADER)
    assert run(tmp_path, "init").code == 0
    loader = find_project(tmp_path).settings.module[0].loader
    assert loader == LoaderSettings(path="loader.c", array="names", function="load")


def test_the_product_without_its_header_gets_the_same_settings(tree: Path, run: Run) -> None:
    (tree / "generated/fc_cuda_ptx.h").unlink()
    assert run(tree, "init").code == 0
    written, ours = find_project(tree).settings, find_project(ROOT).settings
    assert written.module == ours.module
    assert written.header == ours.header


def test_sources_of_one_name_get_constants_of_their_own(tmp_path: Path, run: Run) -> None:
    for name in ("a/k.cu", "b/k.cu", "é.cu"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(KERNEL)
    assert run(tmp_path, "init").code == 0
    names = [module.constant for module in find_project(tmp_path).settings.module]
    assert names == ["K_PTX", "B_K_PTX", "PTX__"]


def test_kernels_that_no_loader_can_name_are_told(tmp_path: Path, run: Run) -> None:
    (tmp_path / "a.cu").write_text("__global__ void mangled(float *x) { x[0] = 1; }\n")
    ran = run(tmp_path, "init")
    assert ran.code == 2
    assert 'none of its kernels is extern "C"' in ran.err


def test_settings_inside_a_project_are_told(tree: Path, run: Run) -> None:
    assert run(tree, "init").code == 0
    ran = run(tree / "kernels", "init")
    assert ran.code == 0
    assert f"the settings in {tree / 'ssmtool.toml'} do not apply in this folder" in ran.err


LAYERS = """\
#include <cuda.h>
#include "kernels_ptx.h"
static const char *const dq_names[] = { "dq" };
static const char *const ln_names[] = { "ln" };
int start(void)
{
    CUmodule a, b;
    if (cuModuleLoadData(&a, DEQUANT_PTX) || cuModuleLoadData(&b, LAYER_NORM_PTX))
        return -1;
    return take(a, dq_names, 1) || take(b, ln_names, 1);
}
"""


def layers(folder: Path, loader: str, *, second: str = "layer_norm.cu") -> None:
    (folder / "dequant_int8.cu").write_text(KERNEL.replace("scale", "dq"))
    (folder / second).write_text(KERNEL.replace("scale", "ln"))
    (folder / "gpu.c").write_text(loader)


@pytest.mark.parametrize("second", ["layer_norm.cu", "norms.cu"])
def test_a_constant_that_is_named_otherwise_than_its_source_is_taken_from_the_c(
    tmp_path: Path, run: Run, second: str
) -> None:
    layers(tmp_path, LAYERS, second=second)
    ran = run(tmp_path, "init")
    assert (ran.code, "mentions" in ran.err) == (0, False)
    settings = find_project(tmp_path).settings
    assert [module.constant for module in settings.module] == ["DEQUANT_PTX", "LAYER_NORM_PTX"]
    assert settings.header == "kernels_ptx.h"


def test_constants_that_nothing_tells_apart_are_noted_and_none_is_given_away(tmp_path: Path, run: Run) -> None:
    text = LAYERS.replace("&a, DEQUANT", "&mods[i], QUANT").replace("&b, LAYER_NORM", "&mods[j], NORM")
    layers(tmp_path, text.replace("take(a", "take(mods[0]").replace("take(b", "take(mods[1]"))
    ran = run(tmp_path, "init")
    assert ran.code == 0
    assert "gpu.c mentions QUANT_PTX, which no module makes" in ran.err
    assert [module.constant for module in find_project(tmp_path).settings.module] == [
        "DEQUANT_INT8_PTX",
        "LAYER_NORM_PTX",
    ]


def test_names_made_up_for_a_foreign_project_speak_of_nobody_elses_product(tmp_path: Path, run: Run) -> None:
    for name in ("layer_norm.cu", "3d-conv.cu"):
        (tmp_path / name).write_text(KERNEL)
    assert run(tmp_path, "init").code == 0
    settings = find_project(tmp_path).settings
    assert [module.constant for module in settings.module] == ["PTX_3D_CONV", "LAYER_NORM_PTX"]
    assert settings.header == "generated/kernels_ptx.h"


def test_one_array_of_two_sources_goes_to_the_first_and_the_second_is_told(tmp_path: Path, run: Run) -> None:
    text = LAYERS.replace('{ "dq" }', '{ "dq", "ln" }').replace('static const char *const ln_names[] = { "ln" };\n', "")
    layers(tmp_path, text.replace("take(a, dq_names, 1) || take(b, ln_names, 1)", "take(a, dq_names, 2)"))
    ran = run(tmp_path, "init")
    assert ran.code == 0
    assert "dq_names in gpu.c has kernels of dequant_int8.cu and layer_norm.cu: give each its own array" in ran.err
    first, second = find_project(tmp_path).settings.module
    assert (first.loader is not None, second.loader) == (True, None)
    text = (tmp_path / "ssmtool.toml").read_text()
    assert '# array = "dq_names"\n' in text
    assert "dq_names is the array of dequant_int8.cu already" in text


def test_a_table_of_structs_is_a_loader_and_a_call_by_one_name_is_told(tmp_path: Path, run: Run) -> None:
    rows = 'static struct k table[] = {{"dq", &f0}, {NULL, NULL}};\n'
    layers(tmp_path, rows + 'int start(void) { return cuModuleGetFunction(&f, m, "ln"); }\n')
    ran = run(tmp_path, "init")
    assert ran.code == 0
    assert 'gpu.c has "ln" outside an array of names' in ran.err
    first, second = find_project(tmp_path).settings.module
    assert first.loader == LoaderSettings(path="gpu.c", array="table")
    assert second.loader is None

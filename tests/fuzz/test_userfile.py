"""A user's own kernels: a good file finds a wrong kernel, a bad file is told with its line, never with a traceback."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ssmtool.audit.inputs import read_input
from ssmtool.device.cpu import CpuDevice
from ssmtool.errors import SsmtoolError
from ssmtool.fuzz import Fuzzed, Limits, Plan, Subject, fuzz
from ssmtool.fuzz.choices import Choices
from ssmtool.fuzz.user_target import UserTarget, _title
from ssmtool.fuzz.userfile import Draw, UserFile
from ssmtool.fuzz.vector import vector_of
from ssmtool.golden import case_bytes, parse_case
from ssmtool.verify import run

ROOT = Path(__file__).parent.parent.parent
EXAMPLE = ROOT / "examples" / "vector_kernels"
FILE = (EXAMPLE / "vector_fuzz.py").read_text("utf-8")
PTX = read_input(str(EXAMPLE / "generated" / "vector_ptx.h"))[0].module.text
DRAW = 'def draw_vec_axpy(draw):\n    n = draw.integer("n", 1, 9)\n    return '
LAUNCH = '{"grid": 1, "block": 32, "args": {"y": draw.array("y", n), "x": draw.array("x", n), "a": 2.0, "n": n}}'
FORMULA = "\n\ndef vec_axpy(y, x, a, n):\n    return "


def tried(text: str, *targets: str, ptx: str = PTX, rounds: int = 8) -> Fuzzed:
    subject = Subject(((ptx, {}),), user=("my_fuzz.py", text))
    limits = Limits(tries=150, seconds=60, data_tries=60, data_seconds=60)
    return fuzz(Plan(subject, targets or ("vec_axpy",), 1, rounds=rounds, limits=limits))


def test_the_example_draws_all_of_its_kernels_and_they_are_right() -> None:
    found = tried(FILE, "vec_axpy", "vec_rms_norm", "vec_softmax", rounds=6)
    assert not found.found, [each.failure.message for each in found.found]
    assert not found.problems
    assert found.total == 18


def test_a_wrong_kernel_is_shrunk_to_one_element_and_its_vector_fails_again() -> None:
    start = PTX.index(".entry vec_axpy(")
    wrong = PTX[:start] + re.sub(r"fma\.rn\.f32\s+(%f\d+), (%f\d+), (%f\d+), (%f\d+);",
                                 r"fma.rn.f32 \1, \2, \3, \3;", PTX[start:], count=1)  # fmt: skip
    found = tried(FILE, ptx=wrong, rounds=20)
    (each,) = found.found
    assert each.failure.choices["n"] == 1
    vector, shown = vector_of(each.failure, 1, each.round)
    assert shown
    assert vector is not None
    case = parse_case(case_bytes(vector))
    assert case.meta.buffers["y"].shape == (1,)
    assert run(wrong, [case], CpuDevice(), relations=False).caught
    assert not run(PTX, [case], CpuDevice(), relations=False).caught


def test_a_guard_that_is_off_by_one_is_out_of_bounds() -> None:
    start = PTX.index(".entry vec_axpy(")
    wrong = PTX[:start] + PTX[start:].replace("setp.ge.s32", "setp.gt.s32", 1)
    (each,) = tried(FILE, ptx=wrong, rounds=20).found
    assert each.failure.kind.what == "out-of-bounds"
    assert "past the end" in each.failure.message


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", None, "has no function draw_KERNEL"),
        ("def broken(:", 1, "is no Python"),
        ("import sys\nsys.exit(3)", 2, "SystemExit: 3"),
        ("import no_such_module", 1, "ModuleNotFoundError"),
        (f"x = {'-' * 200_000}1", None, "is no Python: "),
        ("x = 1\n" + DRAW + LAUNCH, 2, "no function vec_axpy, the formula"),
    ],
)
def test_a_file_that_is_wrong_is_told_with_its_line(text: str, line: int | None, says: str) -> None:
    with pytest.raises(SsmtoolError, match=re.escape(says)) as raised:
        UserFile("my_fuzz.py", text)
    assert raised.value.path == "my_fuzz.py"
    assert raised.value.line == line


@pytest.mark.parametrize(
    ("launch", "formula", "line", "says"),
    [
        ("None", "{}", 1, "returns NoneType, not a dict"),
        ("{}", "{}", 1, '"args" must be a dict'),
        (LAUNCH.replace('"grid": 1', '"gird": 1'), '{"y": y}', 1, "returns a key 'gird'"),
        (LAUNCH.replace('"grid": 1', '"grid": 0'), '{"y": y}', 1, "sizes are whole numbers above 0"),
        (LAUNCH.replace('"grid": 1', '"grid": 1.5'), '{"y": y}', 1, "it must be a number, or up to three"),
        (LAUNCH.replace('"grid": 1', '"grid": 10**9'), '{"y": y}', 1, "threads; at most"),
        (LAUNCH.replace("2.0", '"two"'), '{"y": y}', 1, "a is str"),
        (LAUNCH.replace("2.0", "float('nan')"), '{"y": y}', 1, "a number must be finite"),
        (LAUNCH.replace("2.0", "2**40"), '{"y": y}', 1, "no int32"),
        (LAUNCH.replace("draw.array", "draw.aray"), '{"y": y}', 3, "AttributeError"),
        (LAUNCH, '{"y": 1 / 0}', 7, "ZeroDivisionError: division by zero"),
        (LAUNCH, "y", 6, "returns ndarray, not a dict"),
        (LAUNCH, "{}", 6, "returns nothing that the kernel leaves"),
        (LAUNCH, '{"z": y}', 6, "returns 'z', which is no argument"),
        (LAUNCH, '{"y": y[:0]}', 6, "returns y of shape (0,); the buffer has"),
        (LAUNCH, '{"y": y.astype(str)}', 6, "which is no number"),
        (LAUNCH, '{"y": y, "z": y, 1: y}', 6, "returns 1, which is no argument"),
        (LAUNCH, '{"y": [[1.0], [1.0, 2.0]]}', 6, "ValueError: setting an array element"),
        (LAUNCH.replace('draw.array("y", n)', "draw.output(-1)"), '{"y": x}', 3, "ValueError: an output: shape (-1,)"),
        (LAUNCH.replace('draw.array("y", n)', "draw.output(10**5, 10**5)"), '{"y": x}', 3, "has more than"),
        (LAUNCH.replace('"x", n', '"x", 10**5, 10**5'), '{"y": x}', 3, "has more than"),
        (LAUNCH.replace('array("x", n', 'integers("x", n, low=0, high=2**31'), '{"y": x}', 3, "are no int32"),
        (
            LAUNCH.replace('array("x", n', 'integers("x", n, low=-1, high=2, dtype="uint8"'),
            '{"y": x}',
            3,
            "no uint8, which",
        ),
        (
            LAUNCH.replace('array("x", n', 'integers("x", n, low=0, high=2, dtype=float'),
            '{"y": x}',
            3,
            "is none of int8, ",
        ),
        (LAUNCH.replace('"n": n}', '"n": float(n)}'), '{"y": y}', 1, "cannot be launched: vec_axpy: parameter"),
        (LAUNCH.replace('"block": 32', '"block": 2048'), '{"y": y}', 1, "cannot be launched: "),
        (
            LAUNCH[:-1] + ', "policy": {"y": {"nsme": 1.0}}}',
            '{"y": y}',
            1,
            "a key 'nsme'; there are nmse, max_rms, max_ulp, ",
        ),
        (LAUNCH.replace('draw.array("y", n)', "draw.output(n)"), '{"x": x}', 6, "does not return y"),
        (LAUNCH[:-1] + ', "policy": {"y": "lenient"}}', '{"y": y}', 1, "neither recurrence"),
        (LAUNCH[:-1] + ', "policy": {"y": {}}}', '{"y": y}', 1, "it needs a limit"),
        (LAUNCH[:-1] + ', "policy": {"y": {"nmse": float("inf")}}}', '{"y": y}', 1, "it needs a limit"),
        (LAUNCH[:-1] + ', "policy": {"y": {"max_rms": float("nan")}}}', '{"y": y}', 1, "it needs a limit"),
        (LAUNCH[:-1] + ', "policy": {"y": {"max_ulp": -1}}}', '{"y": y}', 1, "limits are finite and not below 0"),
        (LAUNCH[:-1] + ', "group": {"y": 2}}', '{"y": y}', 1, '"group" of y is 2'),
    ],
)
def test_a_draw_or_formula_that_is_wrong_is_told_with_its_line(launch: str, formula: str, line: int, says: str) -> None:
    found = tried(DRAW + launch + "\n" + FORMULA + formula)
    assert not found.found
    ((target, why, _),) = found.problems
    assert target == "vec_axpy"
    assert why.startswith(f"my_fuzz.py:{line}: "), why
    assert says in why


def test_what_a_file_prints_is_not_mixed_with_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    drawing = DRAW.replace("    return", "    print('drawn')\n    return")
    found = tried(
        "print('read')\n" + drawing + LAUNCH + "\n" + FORMULA + "print('right') or {'y': a * x + y}", rounds=1
    )
    assert not found.problems
    said = capsys.readouterr()
    assert not said.out
    assert {"read", "drawn", "right"} <= set(said.err.split())


def test_a_file_may_have_dataclasses_and_annotations_of_its_own() -> None:
    text = "from dataclasses import dataclass\n\n@dataclass\nclass Size:\n    n: int = 3\n\n\ndef typed(a: list): ...\n"
    file = UserFile("my_fuzz.py", text + DRAW + LAUNCH + FORMULA + '{"y": y}')
    assert file.function("Size")().n == 3
    # Not the text that `from __future__ import annotations` in the reader would make of it.
    assert file.function("typed").__annotations__ == {"a": list}


def test_a_formula_that_writes_its_inputs_changes_nothing_of_the_launch() -> None:
    launch = LAUNCH.replace('"x": draw.array("x", n)', '"x": draw.integers("x", n, low=1, high=9)')
    target = UserTarget(UserFile("my_fuzz.py", DRAW + launch + FORMULA + "x.fill(0) or {'y': y}"), "vec_axpy")
    case = target.draw(Choices(b""))
    target._formula(case, case.meta.runs[0], np.float64)
    assert (case.before["x"] >= 1).all()


def test_a_kernel_that_the_ptx_lacks_is_a_problem() -> None:
    found = tried(FILE.replace("vec_axpy", "vec_axpi"), "vec_axpi")
    assert "did you mean vec_axpy?" in found.problems[0][1]


def test_a_buffer_without_elements_is_one_that_must_stay() -> None:
    text = (DRAW + LAUNCH).replace('"n", 1, 9', '"n", 0, 0') + "\n" + FORMULA + '{"y": a * x + y}'
    found = tried(text)
    assert not found.problems
    assert not found.found
    case = UserTarget(UserFile("my_fuzz.py", text), "vec_axpy").draw(Choices(b""))
    assert case.meta.buffers["y"].after == "unchanged"


def test_what_a_draw_offers_is_within_what_was_asked() -> None:
    for number in range(40):
        draw = Draw(Choices(bytes([(number * 29) % 256]) * 60))
        assert 3 <= draw.integer("n", 3, 5) <= 5
        assert draw.pick("p", "xyz") in "xyz"
        x = draw.array("x", 4, 6, low=-2, high=3)
        assert x.min() >= -2
        assert x.max() <= 3
        assert np.isfinite(draw.array("y", 50)).all()
        assert -1 <= draw.number("a", -1, 2) <= 2
        numbers = draw.integers("i", 20, low=-3, high=4)
        assert numbers.dtype == np.int32
        assert set(numbers.tolist()) <= set(range(-3, 5))
        for bits in (8, 16, 32, 64):
            for kind in (f"int{bits}", f"uint{bits}"):
                limits = np.iinfo(kind)
                ends = draw.integers("ends", 50, low=limits.max - 2, high=limits.max, dtype=kind)
                assert ends.dtype == np.dtype(kind)
                assert limits.max - 2 <= int(ends.min()) <= int(ends.max()) <= limits.max
                assert len(set(draw.integers("all", 200, low=limits.min, high=limits.max, dtype=kind).tolist())) > 90
    assert Draw(Choices(b"")).number("a") == 1.0


def test_an_option_is_told_by_its_value_not_by_its_number() -> None:
    """`threads 2` where the block is 256 sends whoever reads it to the wrong launch."""

    class Odd:
        def __str__(self) -> str:
            raise RuntimeError

    choices = Choices(bytes([0, 0, 2, 1, 1, 0]))
    draw = Draw(choices)
    assert draw.pick("threads", [32, 64, 256]) == 256
    draw.pick("mode", ["a", "b\nc"])
    draw.pick("eps", [0.5, 1e-6])
    draw.pick("odd", [Odd()])
    assert _title(choices) == "threads 256, mode b c, eps 1e-06, odd Odd"
    assert choices.made["threads"] == 2

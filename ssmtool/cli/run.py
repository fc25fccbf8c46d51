"""`ssmtool run`: one kernel, run on the CPU, with arguments given by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ssmtool.cli.context import AppContext, exits_with_code, print_report, report_format_option
from ssmtool.errors import SsmtoolError

if TYPE_CHECKING:
    from ssmtool.audit.inputs import Input
    from ssmtool.cli.run_values import Value
    from ssmtool.execute import LaunchResult
    from ssmtool.execute.arguments import Shape

_SHOWN = 8


@click.command("run", epilog="Exit codes: 0 the kernel ran; 1 it did something wrong; 2 it could not be run.")
@click.argument("file", metavar="FILE|-")
@click.argument("entry")
@click.option("--grid", required=True, metavar="X[,Y[,Z]]", help="Thread blocks.")
@click.option("--block", required=True, metavar="X[,Y[,Z]]", help="Threads of a block.")
@click.option("--shared", default=0, metavar="BYTES", help="Dynamic shared memory of a block.")
@click.option("--arg", "words", multiple=True, metavar="[NAME=]VALUE", help="An argument; VALUE as listed above.")
@click.option("--axes", multiple=True, metavar="NAME=A,B", help="Names of a buffer's axes, for messages.")
@click.option("--save", multiple=True, metavar="[NAME=]FILE", help="All buffers to a .npz, or one to a .npy.")
@click.option("--force", is_flag=True, help="Let --save replace a file that was read.")
@click.option("--show", multiple=True, metavar="NAME[:N]", help="Print a buffer's first N values (default 8).")
@click.option(
    "--check",
    type=click.Choice(["bounds", "all", "none"]),
    default="bounds",
    show_default=True,
    help="Accesses outside buffers; races, unwritten memory and barriers too; nothing.",
)
@click.option("--counters", is_flag=True, help="Count executed warp instructions.")
@click.option("--threads", type=click.IntRange(1), metavar="N", help="Threads to run on (default: one for each CPU).")
@click.option("--budget", type=click.IntRange(1), metavar="N", help="Rounds of loops after which a warp is endless.")
@click.option("--repeat", type=click.IntRange(1), default=1, metavar="N", help="Run N times from the same start.")
@click.option(
    "--device",
    default="cpu",
    show_default=True,
    metavar="WORDS",
    help="Where to run: cpu, cuda[:N], pycuda[:N], several with commas, or all. Several are compared bit by bit.",
)
@report_format_option
@click.pass_obj
@exits_with_code
def command(
    app: AppContext,
    file: str,
    entry: str,
    grid: str,
    block: str,
    shared: int,
    words: tuple[str, ...],
    axes: tuple[str, ...],
    save: tuple[str, ...],
    force: bool,
    show: tuple[str, ...],
    check: Literal["bounds", "all", "none"],
    counters: bool,
    threads: int | None,
    budget: int | None,
    repeat: int,
    device: str,
    output_format: str,
) -> int:
    """Run a kernel on the CPU, bit for bit, with bounds checked.

    FILE is PTX, or a header or C source with PTX in its strings; - is standard input. Parameters go by their names in
    the C source where FILE tells them, else param_0, param_1, ...; a VALUE without a name is the next parameter's.

    \b
    VALUE is one of
      1, -2, 0x10, 0.5     a number, of the parameter's type
      null                 a null pointer
      @y.npy, @in.npz:y    an array from a file
      zeros:32x128         a new buffer; also ones:, arange:, uninit: (never written),
      full:32x128:1.5      full:SHAPE:VALUE, and random:SHAPE[:SEED] (normal);
      zeros:64:int32       each with a type at its end, float32 if there is none
      same:y               the buffer given for y
      bytes:00ff           the bytes of a struct

    \b
    Examples:
      ssmtool run k.ptx scale --grid 4 --block 128 --arg zeros:512 --arg arange:512 --arg 2.5 --arg 512 --show param_0
      ssmtool run k.h scale --grid 4 --block 128 --arg y=zeros:512 --arg x=@x.npy --arg a=2 --arg n=512 --save out.npz
      ssmtool run k.ptx scale --grid 4 --block 128 --arg uninit:512 ... --check all
      ssmtool run k.ptx scale --grid 4096 --block 128 ... --repeat 20 --counters
      ssmtool run k.ptx scale --grid 4 --block 128 ... --device all    the CPU and every card, compared bit by bit
    """
    from ssmtool.audit.inputs import read_input
    from ssmtool.execute import require_libraries

    require_libraries()
    texts = read_input(file)
    text = next((each for each in texts if entry in {kernel.name for kernel in each.module.entries}), texts[0])
    try:
        return _run(
            app, text, file, entry, _extents("--grid", grid), _extents("--block", block), shared, words, axes, save,
            show, force=force, repeat=repeat, device=device, output_format=output_format,
            options={"check": check, "counters": counters, "threads": threads, "budget": budget},
        )  # fmt: skip
    except SsmtoolError as error:
        raise _placed(error, text) from None


def _run(
    app: AppContext,
    text: Input,
    file: str,
    entry: str,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    shared: int,
    words: Sequence[str],
    axes: Sequence[str],
    save: Sequence[str],
    show: Sequence[str],
    *,
    force: bool,
    repeat: int,
    device: str,
    output_format: str,
    options: dict[str, Any],
) -> int:
    from ssmtool.cli.run_device import print_device_run, run_on_devices
    from ssmtool.cli.run_save import save_plan
    from ssmtool.cli.run_values import parse_values
    from ssmtool.execute import Module
    from ssmtool.execute.arguments import parameter_names
    from ssmtool.findings import Finding, Outcome, Severity
    from ssmtool.report.run import findings_of, print_run, print_values, run_json, summary

    module = Module(text.module, parameters=text.parameters)
    function = next((kernel for kernel in text.module.entries if kernel.name == entry), None)
    params = function.params if function else ()
    names = parameter_names(entry, [param.name for param in params], text.parameters.get(entry, ()))
    values = parse_values(params, names, words) if function else {}
    read = [value.file for value in values.values() if value.file is not None]
    plan = save_plan(save, [*read, *([] if file == "-" else [Path(file)])], force=force)
    if device != "cpu":
        if options["check"] == "all" or options["counters"]:
            raise SsmtoolError("--check all and --counters are the executor's", hint="leave out --device")
        arguments = {name: value.value for name, value in values.items()}
        ran = run_on_devices(device, text.module, text.parameters, entry, grid, block, shared, arguments, repeat)
        shown = _counts(show, ran.buffers)
        plan.check(ran.buffers)
        print_device_run(ran, shown, app.quiet, output_format, f"run {file} {entry} --device {device}")
        _written(plan.write(ran.buffers), app, output_format)
        return int(ran.outcome.verdict)
    result, times = _launches(module, entry, grid, block, shared, values, _axes(axes), repeat, options)
    shown = _counts(show, result.buffers)
    assert function is not None
    plan.check(result.buffers)
    outcome = Outcome(findings=findings_of(result, _file(text), lambda line: text.place(line)[0]))
    if module.cache_problem:
        outcome.findings.append(Finding("run/not-cached", Severity.NOTE, module.cache_problem))
    if output_format == "console":
        from ssmtool.report.console import print_outcome

        if not app.quiet:
            blocks = grid[0] * (*grid, 1)[1] * (*grid, 1, 1)[2]
            print_run(result, function, blocks)
        print_values(shown, result.buffers)
        print_outcome(outcome, summary=summary(result, grid, times), quiet=app.quiet)
    else:
        extra = {"grid": list(grid), **run_json(result, function, times)}
        extra["values"] = {name: result.buffers[name].reshape(-1)[:count].tolist() for name, count in shown.items()}
        print_report(outcome, output_format, command=f"run {file} {entry}", extra=_finite(extra))
    # Also after a fault: what the kernel left is what one wants to look at.
    _written(plan.write(result.buffers), app, output_format)
    return int(outcome.verdict)


def _written(paths: Sequence[Path], app: AppContext, output_format: str) -> None:
    for path in paths:
        if not app.quiet and output_format == "console":
            click.echo(f"wrote {path}", err=True)


def _launches(
    module: Any,
    entry: str,
    grid: tuple[int, ...],
    block: tuple[int, ...],
    shared: int,
    values: dict[str, Value],
    axes: dict[str, Shape],
    repeat: int,
    options: dict[str, Any],
) -> tuple[LaunchResult, list[float]]:
    """The last result and every time. Buffers are put back before each repetition: all do the same work."""
    arguments = {name: value.value for name, value in values.items()}
    fresh = [name for name, value in values.items() if value.uninitialised]
    arrays = [value for value in arguments.values() if hasattr(value, "nbytes")]
    before = [array.copy() for array in arrays] if repeat > 1 else []
    times: list[float] = []
    while True:
        result: LaunchResult = module.launch(
            entry, grid, block, arguments, shared, uninitialised=fresh, shapes=axes, on_fault="collect", **options
        )
        times.append(result.seconds)
        if len(times) >= repeat or not result.ok:
            return result, times
        for array, copy in zip(arrays, before, strict=True):
            array[...] = copy


def _extents(option: str, text: str) -> tuple[int, ...]:
    parts = text.replace("x", ",").split(",")
    if not 1 <= len(parts) <= 3 or not all(part.strip().isdecimal() and len(part) < 19 for part in parts):
        raise SsmtoolError(f"{option} {text}: expected X[,Y[,Z]]")
    return tuple(int(part) for part in parts)


def _axes(words: Sequence[str]) -> dict[str, Shape]:
    found: dict[str, Shape] = {}
    for word in words:
        name, equals, axes = word.partition("=")
        if not equals or not all(axes.split(",")):
            raise SsmtoolError(f"--axes {word}: expected NAME=A,B")
        found[name] = tuple(axes.split(","))
    return found


def _counts(words: Sequence[str], buffers: Mapping[str, Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in words:
        name, colon, count = word.partition(":")
        if name not in buffers:
            raise SsmtoolError(f"--show {word}: no buffer {name}; there are: {', '.join(buffers) or 'none'}")
        if colon and not (count.isdecimal() and len(count) < 10):
            raise SsmtoolError(f"--show {word}: expected NAME:N")
        found[name] = int(count) if colon else _SHOWN
    return found


def _file(text: Input) -> str:
    return (text.piece.path if text.piece else None) or text.name


def _finite(value: Any) -> Any:
    """JSON has no NaN and no infinity: they become words."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    if isinstance(value, float) and not abs(value) < float("inf"):
        return str(value)
    return value


def _placed(error: SsmtoolError, text: Input) -> SsmtoolError:
    """An error at a line of the PTX as one at the file's line."""
    if error.line is not None and error.path in (None, text.module.path):
        line = text.place(error.line)[0]
        if line != error.line:
            error.message += f" (line {error.line} of the PTX)"
            error.column = None
        error.line, error.path = line, _file(text)
    return error

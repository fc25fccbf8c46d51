"""The three-step rule on loaders of every layout: findings, the simulated loader, and fixes to the byte."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssmtool.csource import find_name_array, read_kernels
from ssmtool.csource.mask import mask
from ssmtool.findings import Severity
from ssmtool.registry import RegistryReport, check_registry
from ssmtool.registry.fix import plan_fix
from ssmtool.registry.order import in_order, misplaced

CASES = sorted((Path(__file__).parent / "cases" / "registry").glob("*.case"))


@dataclass(frozen=True)
class Case:
    """One case file: `=== name [argument]` opens a section."""

    sections: dict[str, str]
    arguments: dict[str, str]

    def words(self, name: str) -> list[str]:
        return [word for word in self.sections[name].split() if word != "-"]


def read_case(path: Path) -> Case:
    parts = re.split(r"(?m)^=== (\w+) ?(.*)\n", path.read_text("utf-8"))
    names, arguments, bodies = parts[1::3], parts[2::3], parts[3::3]
    return Case(dict(zip(names, bodies, strict=True)), dict(zip(names, arguments, strict=True)))


def check(source: str, entries: list[str], loader: bytes, fresh: list[str] | None = None) -> RegistryReport:
    return check_registry(
        module_name="kernels",
        source=read_kernels(source, "kernels.cu", defines={}),
        header_entries=entries,
        ptx_entries=fresh,
        header_path="header.h",
        constant="PTX",
        loader=find_name_array(loader, "loader.c", "names", "load_functions"),
    )


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_case(path: Path, line_end: str) -> None:
    case = read_case(path)
    loader = case.sections["loader"].replace("\n", line_end).encode()
    source = case.sections["source"].replace("\n", line_end)
    report = check(source, case.words("header"), loader)

    told = [
        f"{finding.rule} {finding.kernel or '-'} {finding.where and _line(finding.where)}"
        for finding in report.findings
    ]
    assert sorted(told) == sorted(case.sections["findings"].splitlines())
    skips = [skip.check for skip in (*report.skips, *report.required_skips)]
    assert skips == case.sections.get("skips", "").splitlines()

    simulation = report.simulation
    assert simulation is not None
    if "stops" in case.sections:
        loaded, message = case.sections["stops"].splitlines()
        assert simulation.when == "stopped"
        assert simulation.stopped_index == int(case.arguments["stops"])
        assert simulation.message == message
        assert any(message in (finding.effect or "") for finding in report.findings)
    else:
        loaded = (case.sections.get("loads") or case.sections["undefined"]).strip()
        assert simulation.when == ("loaded" if "loads" in case.sections else "undefined")
        assert simulation.message is None
    assert " ".join(simulation.loaded) == loaded.replace("-", "")
    assert {row.kernel for row in report.rows if row.loads} == set(simulation.loaded)

    fix = plan_fix(report, loader)
    if "fixed" in case.sections:
        assert fix.refusal is None
        assert fix.data == case.sections["fixed"].replace("\n", line_end).encode()
        again = check(source, case.words("header"), fix.data)
        assert [finding for finding in again.findings if finding.severity is Severity.ERROR] == []
        assert not plan_fix(again, fix.data).changed
    else:
        assert fix.data == loader
        assert not fix.changed
        if "refused" in case.sections:
            assert fix.refusal is not None
            assert case.sections["refused"].strip() in fix.refusal


def _line(where: str) -> str:
    """`path:line`, without the column."""
    return ":".join(where.split(":")[:2])


def test_every_error_says_what_happens_and_what_mends_it() -> None:
    for path in CASES:
        case = read_case(path)
        for finding in check(case.sections["source"], case.words("header"), case.sections["loader"].encode()).findings:
            if finding.severity is Severity.ERROR:
                assert finding.effect, (path.stem, finding.rule)
                assert finding.fix, (path.stem, finding.rule)
                assert finding.path, (path.stem, finding.rule)


def test_a_new_kernel_is_walked_through_three_steps() -> None:
    case = read_case(CASES[0].with_name("new_kernel_in_source_only.case"))
    (finding,) = check(case.sections["source"], case.words("header"), case.sections["loader"].encode()).findings
    assert "step 1 of 3, defined in the source: done (kernels.cu:4)" in finding.message
    assert "step 2, compiled into header.h: missing" in finding.message
    assert "step 3, named and counted in loader.c: missing" in finding.message
    assert finding.fix is not None
    assert finding.fix.startswith("ssmtool build ")
    assert "raises the count on line 9 to 4" in finding.fix
    assert "ssmtool registry --fix" in finding.fix


def test_a_fresh_ptx_outweighs_the_text_and_the_old_header() -> None:
    """What a compiler made just now is there, even if the text hides it; and the header may lag behind."""
    case = read_case(CASES[0].with_name("new_kernel_in_source_only.case"))
    loader = case.sections["loader"].encode()
    report = check(case.sections["source"], ["alpha", "beta", "gamma"], loader, ["alpha", "beta", "gamma", "delta"])
    rules = [finding.rule for finding in report.findings]
    assert rules == ["registry/symbol-not-in-header", "registry/symbol-without-name"]
    assert not plan_fix(report, loader).changed, "the header the loader meets does not have it yet"


def test_every_kernel_after_the_stop_is_listed() -> None:
    names = [f"k{index}" for index in range(15)]
    source = "".join(f'extern "C" __global__ void {name}(int x) {{}}\n' for name in names)
    listed = ", ".join(f'"{name}"' for name in names)
    loader = f"const char *names[] = {{ {listed} }};\nint x = load_functions(names, 15);\n"
    report = check(source, names[:4] + names[5:], loader.encode())
    assert report.simulation is not None
    assert list(report.simulation.inert) == names[4:]
    stopper = next(finding for finding in report.findings if finding.rule == "registry/name-without-symbol")
    assert stopper.effect is not None
    assert all(name in stopper.effect for name in names[4:])
    assert report.summary == "kernels: 4 of 15 kernels load"


def test_bytes_of_another_encoding_are_kept() -> None:
    loader = (
        b'/* caf\xe9 */ static const char *names[] = {\n    "alpha", /* \xff\xfe */\n    "gamma", // \xe9\n};\n'
        b"int x = load_functions(names, 2);\n"
    )
    source = "".join(f'extern "C" __global__ void {name}(int x) {{}}\n' for name in ("alpha", "beta", "gamma"))
    fix = plan_fix(check(source, ["alpha", "beta", "gamma"], loader), loader)
    assert fix.data == loader.replace(b'    "gamma"', b'    "beta",\n    "gamma"').replace(b", 2)", b", 3)")


@pytest.mark.parametrize("names", [["alpha", "beta"], []])
def test_a_negative_count_loads_nothing(names: list[str]) -> None:
    listed = ", ".join(f'"{name}"' for name in names)
    loader = f"const char *names[] = {{ {listed} }};\nint x = load_functions(names, -1);\n".encode()
    report = check(kernels(["alpha", "beta"]), ["alpha", "beta"], loader)
    assert report.simulation is not None
    assert report.simulation.loaded == ()
    assert "registry/count-too-small" in [finding.rule for finding in report.findings]


@pytest.mark.parametrize("layout", ["    {},\n", "{}, "])
def test_many_edits_at_once_are_the_edits_one_by_one(layout: str) -> None:
    """Neighbours removed, respelt and added in one go; thousands of them in seconds."""
    wanted = [f"kernel_{index}" for index in range(400)]
    listed = [name for index, name in enumerate(wanted) if index % 7 not in (2, 3)]
    listed = [name.replace("kernel", "kernle") if index % 11 == 0 else name for index, name in enumerate(listed)]
    for index in range(0, len(listed), 13):
        listed[index:index] = [f"gone_{index}", f"also_gone_{index}"]
    before = "const char *names[] = {\n", "".join(layout.format(f'"{name}"') for name in listed)
    loader = "".join((*before, "};\n", f"int x = load_functions(names, {len(listed)});\n")).encode()
    fix = plan_fix(check(kernels(wanted), wanted, loader), loader)
    assert fix.refusal is None
    expected = "".join((before[0], "".join(layout.format(f'"{name}"') for name in wanted), "};\n"))
    assert fix.data.decode() == f"{expected}int x = load_functions(names, {len(wanted)});\n"
    assert not plan_fix(check(kernels(wanted), wanted, fix.data), fix.data).changed


# ---------------------------------------------------------------------------------------------------------- properties

identifiers = st.lists(st.from_regex(r"[a-z][a-z0-9_]{0,7}", fullmatch=True), min_size=2, max_size=7, unique=True)
blanks = st.sampled_from(["", " ", "  ", "\t"])
comments = st.sampled_from(["", " /* a, b */", ' /* "quoted", */', " // to the end", " /**/", " /* \xe9 */"])


@st.composite
def one_a_line(draw: st.DrawFn) -> tuple[list[str], list[str], str]:
    """Names, their lines, and the line end: one name a line, comments on the lines between."""
    names = draw(identifiers)
    line_end = draw(st.sampled_from(["\n", "\r\n"]))
    indent = draw(st.sampled_from(["    ", "\t", "", "  "]))
    trailing = draw(st.booleans())
    lines = [f'{indent}"{name}",' for name in names]
    if not trailing:
        lines[-1] = lines[-1].removesuffix(",")
    return names, lines, line_end


def loader_text(body: str, count: int, line_end: str) -> bytes:
    head = f"/* first */{line_end}static const char *const names[] = {{{line_end}"
    tail = f"}};{line_end}int x = load_functions(module, names, {count}, out);{line_end}/* last */"
    return (head + body + tail).encode("latin-1")


def kernels(names: list[str]) -> str:
    return "".join(f'extern "C" __global__ void {name}(int x) {{}}\n' for name in names)


@settings(max_examples=120, deadline=None)
@given(one_a_line(), st.data())
def test_a_deleted_name_comes_back_to_the_byte(array: tuple[list[str], list[str], str], data: st.DataObject) -> None:
    names, lines, line_end = array
    whole = loader_text("".join(line + line_end for line in lines), len(names), line_end)
    gone = data.draw(st.integers(0, len(names) - 1))
    left = [line for index, line in enumerate(lines) if index != gone]
    if not lines[-1].endswith(","):
        left[-1] = left[-1].removesuffix(",")
    count = data.draw(st.sampled_from([len(names), len(names) - 1]))
    broken = loader_text("".join(line + line_end for line in left), count, line_end)
    fix = plan_fix(check(kernels(names), names, broken), broken)
    assert fix.data == whole
    assert not plan_fix(check(kernels(names), names, fix.data), fix.data).changed


@st.composite
def wild(draw: st.DrawFn) -> tuple[list[str], bytes]:
    """Names and a loader in no particular style: blanks, line ends and comments anywhere a C compiler takes them."""
    names = draw(identifiers)
    line_end = draw(st.sampled_from(["\n", "\r\n"]))
    pieces = []
    for index, name in enumerate(names):
        last = index == len(names) - 1
        before_comma = draw(blanks)
        comma = "" if last and draw(st.booleans()) else ","
        comment = draw(comments)
        newline = line_end if comment.startswith(" //") or draw(st.booleans()) else draw(blanks)
        pieces.append(f'{draw(blanks)}"{name}"{before_comma}{comma}{comment}{newline}')
    return names, loader_text("".join(pieces), len(names), line_end)


@settings(max_examples=250, deadline=None)
@given(wild(), st.data())
def test_a_fix_changes_nothing_but_names_and_their_count(array: tuple[list[str], bytes], data: st.DataObject) -> None:
    present, loader = array
    wanted = list(present)
    for name in data.draw(st.lists(st.sampled_from(["new1", "new_two", "n3"]), unique=True, max_size=3)):
        wanted.insert(data.draw(st.integers(0, len(wanted))), name)
    for name in data.draw(st.lists(st.sampled_from(present), unique=True, max_size=2)):
        wanted.remove(name)
    if not wanted:
        return
    fix = plan_fix(check(kernels(wanted), wanted, loader), loader)
    if fix.refusal is not None:
        assert fix.data == loader
        return
    result = find_name_array(fix.data, "loader.c", "names", "load_functions")
    assert list(result.names) == wanted
    assert result.count is not None
    assert result.count.value == len(wanted)
    assert not plan_fix(check(kernels(wanted), wanted, fix.data), fix.data).changed
    # Before and after the array nothing moves but the number; inside, the names that stay and every comment but those
    # on the line of a name that went are still there, in order.
    old = find_name_array(loader, "loader.c", "names", "load_functions")
    assert fix.data[: result.open] == loader[: old.open]
    assert fix.data[result.close :] == loader[old.close :].replace(
        b"names, %d," % len(present), b"names, %d," % len(wanted)
    )
    before, after = mask(loader, "loader.c"), mask(fix.data, "loader.c")
    old_comments = [before.text[start:end] for start, end in before.comments]
    new_comments = [after.text[start:end] for start, end in after.comments]
    if not set(present) - set(wanted):
        assert new_comments == old_comments
        assert _without_names(after.text, result.open, result.close) == _without_names(before.text, old.open, old.close)
    else:
        rest = iter(old_comments)
        assert all(comment in rest for comment in new_comments), "a comment was moved or made up"
    assert (b"\r\n" in fix.data) == (b"\r\n" in loader)
    assert len(re.findall(rb"(?<!\r)\n", fix.data)) == len(re.findall(rb"(?<!\r)\n", loader)) or b"\r\n" not in loader


def _without_names(text: str, start: int, end: int) -> str:
    """The array's text without strings outside comments, commas and blanks: what no fix may touch."""
    comments = re.compile(r"/\*.*?\*/|//[^\n]*")
    kept = comments.findall(text[start:end])
    return "".join(kept) + re.sub(r'"[^"]*"|[\s,]', "", comments.sub("", text[start:end]))


@given(st.lists(st.integers(0, 6), max_size=8))
def test_the_longest_run_in_order(places: list[int]) -> None:
    """Against all subsequences."""
    names = [str(place) for place in places]
    reference = {str(place): place for place in range(7)}
    run = in_order(names, reference)
    kept = [places[index] for index in run]
    assert kept == sorted(set(kept))
    longest = 0
    for mask_bits in range(1 << len(places)):
        chosen = [place for index, place in enumerate(places) if mask_bits >> index & 1]
        if chosen == sorted(set(chosen)):
            longest = max(longest, len(chosen))
    assert len(run) == longest
    assert misplaced(names, reference) == [] or len(run) < len(places)

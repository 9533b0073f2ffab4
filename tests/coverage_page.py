#!/usr/bin/env python3
"""The page of ./dev coverage: totals, each folder, and the files below 80 % of lines with the reason.

usage: coverage_page.py SUMMARY.json REASONS PAGE

SUMMARY.json is gcovr's --json-summary. A line of REASONS is "PATH | reason"; PATH is a file, or a folder with a slash at
its end, from the top of the tree, and the longest that fits counts. It fails, and writes nothing, when a file below
80 % has no reason, and names reasons whose files are all at 85 % or above.
"""
import collections
import json
import pathlib
import sys

LEAST = 80.0
CLEARLY_ABOVE = 85.0  # drawn tests do not run the same lines each time
HEAD = """# Coverage of the unit tests

The unit tests run {lines} of the lines of `libulfm/` and {branches} of its branches.

`./dev coverage --page` makes this page. It builds libulfm with `gcc --coverage -O0`, runs the unit
tests, and counts the lines and branches that they run. Branches that the compiler adds for
exceptions are left out. Code that only jobs run (scripts, MPICH's tests, NX/2) counts as not run
here, and so does code that only a killed process runs.
"""


def percent(part, whole):
    """"97.1 %", or a dash for nothing of nothing."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def read_reasons(path):
    """The reasons by path, in the order of the file."""
    reasons = {}
    for number, line in enumerate(pathlib.Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        where, _, why = (part.strip() for part in line.partition("|"))
        if not why or where in reasons:
            sys.exit(f"{path}:{number}: needs \"PATH | reason\", each path once")
        reasons[where] = why
    return reasons


def reason_for(name, reasons):
    """The path of the longest entry that fits a file; None: none does."""
    fitting = [p for p in reasons if name == p or p.endswith("/") and name.startswith(p)]
    return max(fitting, key=len, default=None)


def folder_of(name):
    """libulfm/fabric/dcm for a file of it: two levels of models and transports, one elsewhere."""
    parts = name.split("/")[:-1]
    return "/".join(parts[:3] if parts[1] in ("fabric", "transport", "proto", "api", "job") else parts[:2])


def totals_of(files):
    """Lines run, lines, branches run and branches of these files together."""
    return [sum(f[key] for f in files) for key in ("line_covered", "line_total", "branch_covered", "branch_total")]


def row(name, files):
    """A row of a table for what these files have together."""
    totals = totals_of(files)
    return f"| {name} | {totals[1]} | {percent(*totals[:2])} | {percent(*totals[2:])} |"


def page(files, reasons):
    """The text, and the paths of REASONS that were used."""
    folders = collections.defaultdict(list)
    for file in files:
        folders[folder_of(file["filename"])].append(file)
    run, all_lines, branches_run, branches = totals_of(files)
    lines = [HEAD.format(lines=percent(run, all_lines), branches=percent(branches_run, branches)),
             "| folder | lines | run | branches run |", "| --- | ---: | ---: | ---: |"]
    lines += [row(f"`{name}`", folders[name]) for name in sorted(folders)]
    lines += [row("**all**", files), "", f"## Files below {LEAST:.0f} %", "",
              "| file | lines | run | branches run | why |", "| --- | ---: | ---: | ---: | --- |"]
    low = sorted((f for f in files if f["line_total"] and f["line_percent"] < LEAST), key=lambda f: f["filename"])
    used, missing = set(), []
    for file in low:
        where = reason_for(file["filename"], reasons)
        if where is None:
            missing.append(f"{file['filename']}: {file['line_percent']} %")
            continue
        used.add(where)
        lines.append(f"{row('`' + file['filename'].removeprefix('libulfm/') + '`', [file])} {reasons[where]} |")
    if missing:
        sys.exit("these files need a reason, or a test:\n  " + "\n  ".join(missing))
    return "\n".join(lines) + "\n", used


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    summary = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    reasons = read_reasons(sys.argv[2])
    text, used = page(summary["files"], reasons)
    pathlib.Path(sys.argv[3]).write_text(text, encoding="utf-8")
    near = {reason_for(f["filename"], reasons) for f in summary["files"]
            if f["line_total"] and f["line_percent"] < CLEARLY_ABOVE}
    for where in reasons:
        if where not in used | near:
            print(f"{sys.argv[2]}: no file of {where} is below {CLEARLY_ABOVE:.0f} % any more: take the line out",
                  file=sys.stderr)


if __name__ == "__main__":
    main()

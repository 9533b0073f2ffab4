"""What the checks of the source tree share: a self-test on a small tree, and the command line of a check."""
import pathlib
import sys
import tempfile


def self_test(files, check, expected):
    """Proves that a check can fail: writes `files` (path: text), and compares what the check says of their folder.

    `check(folder)` returns a list. Value: an exit status.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        found = check(folder)
    if found != expected:
        print(f"self-test: expected {expected}, found {found}", file=sys.stderr)
        return 1
    return 0


def run(arguments, usage, is_top, findings, test):
    """The command line of a check: TOP_FOLDER, which `is_top` knows, or --self-test. Value: an exit status.

    `findings(folder)` yields a line for each thing that is wrong.
    """
    if arguments == ["--self-test"]:
        return test()
    if len(arguments) != 1 or not is_top(pathlib.Path(arguments[0])):
        print(usage, file=sys.stderr)
        return 2
    found = list(findings(arguments[0]))
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0

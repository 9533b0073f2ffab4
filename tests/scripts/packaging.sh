#!/usr/bin/env bash
# Packaging, as far as it goes without a network: the Debian layout takes every file of the stage into a package, the recipe
# for Spack is Python, the Containerfile's step is a command that ./dev has. tests/packaging/chroot installs the packages.
set -uo pipefail
: "${ULFM_STAGE:?}" "${ULFM_SOURCE:?}"
stage=$(cd "$ULFM_STAGE" && pwd -P) || exit 1
[[ -f $stage/share/ulfm/mpich.files ]] || { echo "skipped: no MPICH in the stage" && exit 77; }
command -v patchelf >/dev/null || { echo "skipped: no patchelf" && exit 77; }
# shellcheck source=counting.bash
. "$(dirname "${BASH_SOURCE[0]}")/counting.bash"

"$ULFM_SOURCE/debian/assemble" "$stage" "$scratch/tmp" x86_64-linux-gnu || fail "debian/assemble: status $?"
for tool in "$stage"/bin/ulfm* "$stage"/bin/nx*; do
    name=${tool##*/}
    [[ $name == ulfm_hostd || -x $scratch/tmp/usr/bin/$name ]] || fail "$name is in no package"
done
PYTHONDONTWRITEBYTECODE=1 python3 - "$ULFM_SOURCE" "$scratch/tmp" <<'P' || failures=$((failures + 1))
import ast, fnmatch, os, pathlib, sys

source, tree = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
wrong = []
patterns = [line.strip() for file in sorted((source / "debian").glob("*.install")) for line in file.read_text().splitlines()]
files = [str(pathlib.Path(where, name).relative_to(tree)) for where, _, names in os.walk(tree) for name in names]


def taken(file, pattern):  # as dh_install: a folder stands for what is in it, and * does not cross a /
    parts, wanted = file.split("/"), pattern.split("/")
    return len(parts) >= len(wanted) and all(fnmatch.fnmatch(p, w) for p, w in zip(parts, wanted))


for file in files:
    owners = [p for p in patterns if taken(file, p)]
    if not owners:
        wrong.append(f"{file} is in no package")
for pattern in patterns:
    if not any(taken(file, pattern) for file in files):
        wrong.append(f"debian/*.install: nothing is called {pattern}")
if len(files) < 100:
    wrong.append(f"only {len(files)} files")

recipe = ast.parse((source / "packaging/spack/package.py").read_text())
classes = [node for node in recipe.body if isinstance(node, ast.ClassDef)]
if [c.name for c in classes] != ["Ulfm"] or not any(isinstance(n, ast.FunctionDef) and n.name == "install" for n in classes[0].body):
    wrong.append("packaging/spack/package.py: no class Ulfm with an install()")

container = (source / "Containerfile").read_text()
commands = [line for line in container.splitlines() if line.startswith("RUN ")]
if len(commands) != 1 or "./dev install /opt/ulfm" not in commands[0] or 'CMD ["./tools/demo"]' not in container:
    wrong.append("Containerfile: its step is not ./dev install /opt/ulfm, or its command is not the demo")
print("\n".join("FAIL " + one for one in wrong))
print(f"{len(files)} files in packages")
sys.exit(bool(wrong))
P
echo "$failures failures"
exit $((failures > 0))

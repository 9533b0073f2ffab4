"""How results are told: a table on the terminal, JSON, and the page docs/performance.md."""

import json
import statistics
import textwrap


def columns_of(rows):
    """(heading, function of a row) for what the rows have, ratios last."""
    first = rows[0]
    skip = {"peers", "spread", "ratio_best", "ratio_floor", "ratio_openmpi", "ratio_ports", "ratio_tcp"}
    columns = []
    for key in first:
        if key in skip:
            continue
        if key in first["spread"]:
            columns.append((key, lambda r, k=key: f"{show(r[k])} ({show(r['spread'][k][0])}-{show(r['spread'][k][1])})"))
        elif key.startswith("ulfm_") and len(rows[0]["spread"].get("ulfm", [])) == 2:
            columns.append((key, lambda r, k=key: f"{show(r[k])} ({show(r['spread']['ulfm'][0])}-{show(r['spread']['ulfm'][1])})"))
            for peer in first["peers"]:
                columns.append((peer, lambda r, p=peer: show(r["peers"].get(p))))
        else:
            columns.append((key, lambda r, k=key: show(r.get(k))))
    for ratio, heading in (("ratio_best", "ulfm/best"), ("ratio_openmpi", "ulfm/openmpi"), ("ratio_ports", "ulfm/ports"), ("ratio_tcp", "ulfm/tcp"),
                           ("ratio_floor", "ulfm/floor")):
        if ratio in first:
            columns.append((heading, lambda r, k=ratio: show(r.get(k))))
    return columns


def show(value):
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 10000 else f"{value:.4g}"
    return str(value)


def cells(bench, rows):
    columns = columns_of(rows)
    lines = [[heading for heading, _ in columns]]
    targets = [bench.target(r) for r in rows]
    if any(targets):
        lines[0].append("aim")
    for r, target in zip(rows, targets):
        line = [text(r) for _, text in columns]
        if any(targets):
            line.append("" if target is None else target.text(r))
        lines.append(line)
    return lines


def as_text(bench, rows):
    lines = cells(bench, rows)
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def missed(bench, rows):
    return [r for r in rows if (target := bench.target(r)) and not target.met(r)]


def in_short(bench, rows):
    """A sentence about all rows, instead of those that meet what is aimed at."""
    ratios = [r["ratio_best"] for r in rows if r["ratio_best"] is not None]
    if not ratios:
        return f"{len(rows)} rows, none with another library.\n"
    middle = show(float(f"{statistics.median(ratios):.3g}"))
    return textwrap.fill(f"{len(rows)} rows. ULFM's time over that of the fastest other library is {middle} in the middle, 1 or less in "
                         f"{sum(r <= 1 for r in ratios)}, and more than what is aimed at in {len(missed(bench, rows))}, which are:",
                         100) + "\n"


def as_markdown(bench, rows):
    if bench.only_missed:
        late = missed(bench, rows)
        return in_short(bench, rows) + ("\n" + table_of(bench, late) if late else "\nnone.")
    return table_of(bench, rows)


def table_of(bench, rows):
    lines = cells(bench, rows)
    lines.insert(1, ["--"] * len(lines[0]))
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def head_text(head):
    libraries = ", ".join(f"{name} {version}" for name, version in head["libraries"].items())
    return (f"{head['date']}; {head['processor']}, {head['cores']} cores, {head['memory_GiB']} GiB, Linux {head['kernel']}; "
            f"load {head['load_before']} before; source {head['source']}; {libraries}; {head['rounds']} rounds")


def write_json(path, name, head, rows):
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"bench": name, "head": head, "rows": rows}, file, indent=1)
        file.write("\n")

"""Curves over a logarithmic axis, as SVG."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 420, 70, 20, 40, 60
COLOURS = ["#1f5fa8", "#c0392b", "#2e8b57", "#8e44ad", "#b8860b", "#16808a", "#c2549d", "#555555"]


def curves(path, title, x_name, y_name, lines, levels):
    """Writes `lines` (name -> [(x, y)], x > 0) with horizontal `levels` (name -> y)."""
    points = [p for line in lines.values() for p in line]
    low, high = math.log2(min(x for x, _ in points)), math.log2(max(x for x, _ in points))
    top = 1.1 * max([y for _, y in points] + list(levels.values()))

    def at_x(x):
        return LEFT + (math.log2(x) - low) / max(high - low, 1) * (WIDTH - LEFT - RIGHT)

    def at_y(y):
        return HEIGHT - BOTTOM - y / top * (HEIGHT - TOP - BOTTOM)

    def text(x, y, words, anchor="middle", colour="#222"):
        return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>'

    def line(x1, y1, x2, y2, style):
        return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {style}/>'

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>', text(WIDTH / 2, 22, title)]
    for power in range(math.ceil(low), math.floor(high) + 1, 2):
        out += [line(at_x(2**power), TOP, at_x(2**power), HEIGHT - BOTTOM, 'stroke="#eee"'),
                text(at_x(2**power), HEIGHT - BOTTOM + 16, size(2**power))]
    for step in range(6):
        y = top * step / 5
        out += [line(LEFT, at_y(y), WIDTH - RIGHT, at_y(y), 'stroke="#eee"'), text(LEFT - 8, at_y(y) + 4, f"{y:.3g}", "end")]
    out += [text(WIDTH / 2, HEIGHT - 16, x_name), text(LEFT, TOP - 8, y_name, "end")]
    for name, y in levels.items():
        out += [line(LEFT, at_y(y), WIDTH - RIGHT, at_y(y), 'stroke="#888" stroke-dasharray="5 4"'),
                text(LEFT + 6, at_y(y) - 5, name, "start", "#666")]
    for i, (name, of_line) in enumerate(lines.items()):
        colour = COLOURS[i % len(COLOURS)]
        route = " ".join(f"{at_x(x):.1f},{at_y(y):.1f}" for x, y in sorted(of_line))
        out += [f'<polyline points="{route}" fill="none" stroke="{colour}" stroke-width="2"/>',
                *(f'<circle cx="{at_x(x):.1f}" cy="{at_y(y):.1f}" r="3" fill="{colour}"/>' for x, y in of_line),
                text(WIDTH - RIGHT - 8, HEIGHT - BOTTOM - 14 - 16 * i, name, "end", colour)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(out) + "\n</svg>\n")


def size(number):
    for unit, name in ((2**20, "M"), (2**10, "K")):
        if number >= unit:
            return f"{number // unit}{name}"
    return str(number)

#!/usr/bin/env python3
"""Makes a picture of a terminal: tmux capture-pane -e -p | python3 picture.py > NAME.svg"""
import html, re, sys, unicodedata

CELL, LINE, LEFT, TOP, INK = 8.4, 18, 16, 16, "#d5daea"
lines = sys.stdin.read().rstrip("\n").split("\n")
columns = max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines)
out = []
fill, back, bold, under, reverse = INK, None, False, False, False
for row, line in enumerate(lines):
    column = 0
    for part in re.findall(r"\x1b\[[0-9;]*m|[^\x1b]+", line):
        if part[0] == "\x1b":
            codes = [int(c or 0) for c in part[2:-1].split(";")]
            while codes:
                code = codes.pop(0)
                if code == 0:
                    fill, back, bold, under, reverse = INK, None, False, False, False
                elif code in (1, 4, 7, 22, 24, 27):
                    bold, under, reverse = (code == 1 if code in (1, 22) else bold, code == 4 if code in (4, 24) else under,
                                            code == 7 if code in (7, 27) else reverse)
                elif code == 39:
                    fill = INK
                elif code == 49:
                    back = None
                elif code in (38, 48) and codes[0] == 2:
                    colour = "#%02x%02x%02x" % tuple(codes[1:4])
                    codes = codes[4:]
                    fill, back = (colour, back) if code == 38 else (fill, colour)
                else:
                    sys.exit(f"picture.py: the colour {part!r} is not one of 24 bits")
            continue
        x, y = LEFT + column * CELL, TOP + row * LINE
        wide = sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in part) * CELL
        ink, paper = ("#16181f", fill) if reverse else (fill, back)
        if paper:
            out.append(f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{LINE}" fill="{paper}"/>')
        if under:
            out.append(f'<rect x="{x:.1f}" y="{y + LINE - 2}" width="{wide:.1f}" height="1" fill="{ink}"/>')
        if part.strip():
            weight = ' font-weight="bold"' if bold else ""
            out.append(f'<text x="{x:.1f}" y="{y + 13.5}" textLength="{wide:.1f}" lengthAdjust="spacingAndGlyphs" xml:space="preserve" '
                       f'fill="{ink}"{weight}>{html.escape(part, quote=False)}</text>')
        column += round(wide / CELL)
width, height = 2 * LEFT + columns * CELL, 2 * TOP + len(lines) * LINE
print(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.1f} {height:.1f}" width="{width:.0f}" '
      """font-family="ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14">""")
print('<rect width="100%" height="100%" rx="10" fill="#16181f" stroke="#8a93a5" stroke-opacity="0.25"/>')
print(*out, "</svg>", sep="\n")

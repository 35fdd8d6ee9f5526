"""The page's figures as static SVG, made here from a few shapes.

Why not a plotting library: the page runs under a Content-Security-Policy without inline styles and opens
offline. Vega-Lite needs an embedded runtime of several hundred kilobytes that evaluates generated code
(``unsafe-eval``), and matplotlib writes ``style`` attributes and glyph outlines that differ between versions.
What is left to do is little: dots with intervals, lines and bars. Here text stays text, colours are classes
of the page's style sheet (so they follow the theme and the printer), the same input gives the same bytes, and
each mark carries the id of its number. Colours are Okabe and Ito's (2008); shape or letter tells the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

WIDTH = 340
COLOURS = 8
SHAPES = ("circle", "square", "triangle", "diamond", "cross")


@dataclass(frozen=True)
class Dot:
    """A value with its interval, in data units.

    Attributes:
        value: the estimate.
        low: lower end of the interval; equal to ``value`` where there is none.
        high: upper end.
        series: index of colour and shape.
        number_id: the number it shows.
        zero: whether this is a rate at which nothing was counted; drawn hollow.
    """

    value: float
    low: float
    high: float
    series: int
    number_id: str
    zero: bool = False


@dataclass(frozen=True)
class ForestRow:
    """A labelled row of a forest plot with one dot a series; ``undefined``: series whose number has no value."""

    label: str
    dots: tuple[Dot, ...]
    undefined: tuple[int, ...] = ()


@dataclass(frozen=True)
class Segment:
    """A piece of a stacked bar: share of the bar, index of its colour, letter, the number it shows."""

    share: float
    series: int
    letter: str
    number_id: str


@dataclass(frozen=True)
class BarRow:
    """A labelled stacked bar; ``group`` starts a new block wherever it changes."""

    group: str
    label: str
    segments: tuple[Segment, ...]


def rate_limit(highest: float) -> float:
    """The end of an axis of rates that starts at 0: the next of a few round values."""
    return next((limit for limit in (0.05, 0.1, 0.2, 0.3, 0.5, 0.8) if highest <= limit), 1.0)


def _ticks(low: float, high: float) -> list[float]:
    """At most six round values from ``low`` to ``high``, both among them where they are round."""
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 10) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _n(value: float) -> str:
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _tick_text(value: float) -> str:
    return f"{value:g}".replace("-", "\N{MINUS SIGN}")


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return Markup('<line class="{}" x1="{}" y1="{}" x2="{}" y2="{}"/>').format(kind, _n(x1), _n(y1), _n(x2), _n(y2))


def _text(x: float, y: float, text: str, kind: str) -> Markup:
    return Markup('<text class="{}" x="{}" y="{}">{}</text>').format(kind, _n(x), _n(y), text)


def marker(x: float, y: float, shape: int, *, hollow: bool = False, radius: float = 4.5) -> Markup:
    """One mark in the current colour; a hollow one is a measured zero."""
    kind = "mark hollow" if hollow else "mark"
    form = SHAPES[shape % len(SHAPES)]
    r = radius
    if form == "circle":
        return Markup('<circle class="{}" cx="{}" cy="{}" r="{}"/>').format(kind, _n(x), _n(y), _n(r))
    corners = {
        "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        "triangle": [(0, -1.15), (1.1, 0.85), (-1.1, 0.85)],
        "diamond": [(0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)],
        "cross": [(-1.1, -0.4), (-0.4, -0.4), (-0.4, -1.1), (0.4, -1.1), (0.4, -0.4), (1.1, -0.4), (1.1, 0.4),
                  (0.4, 0.4), (0.4, 1.1), (-0.4, 1.1), (-0.4, 0.4), (-1.1, 0.4)],
    }[form]  # fmt: skip
    points = " ".join(f"{_n(x + r * dx)},{_n(y + r * dy)}" for dx, dy in corners)
    return Markup('<polygon class="{}" points="{}"/>').format(kind, points)


def swatch(colour: str, shape: int | None, letter: str = "", *, hollow: bool = False) -> Markup:
    """A legend's sample in a colour class: a mark, or a filled box with a letter where ``shape`` is None."""
    if shape is None:
        inner = Markup('<rect class="bar" x="1" y="1" width="16" height="14"/>')
        inner += _text(9, 12, letter, "letter") if letter else Markup("")
    else:
        inner = marker(9, 8, shape, hollow=hollow)
    return Markup('<svg class="swatch {}" viewBox="0 0 18 16" aria-hidden="true">{}</svg>').format(colour, inner)


def series_class(series: int) -> str:
    """The colour class of a series of dots."""
    return f"s{series % COLOURS}"


def label_class(index: int) -> str:
    """The colour class of a label; the one after the last is for the unscored."""
    return f"l{index}"


def _svg(height: float, label: str, description: str, body: Markup) -> Markup:
    # no <title>: browsers would show it as a tooltip over the numbers' own
    return Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}"><desc>{}</desc>{}</svg>').format(
        WIDTH, _n(height), label, description, body
    )


def _coloured(series: int, body: Markup) -> Markup:
    return Markup('<g class="{}">{}</g>').format(series_class(series), body)


def _group(number_id: str, colour: str, body: Markup) -> Markup:
    return Markup('<g class="{}" data-number-id="{}">{}</g>').format(colour, number_id, body)


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Position of a value, kept inside the plot."""
        inside = min(max(value, self.low), self.high)
        return self.start + (inside - self.low) / (self.high - self.low) * (self.end - self.start)


def _x_axis(scale: _Scale, top: float, bottom: float, name: str) -> Markup:
    body = Markup("")
    for tick in _ticks(scale.low, scale.high):
        kind = "axis" if tick == 0 else "grid"
        body += _line(scale(tick), top, scale(tick), bottom, kind)
        body += _text(scale(tick), bottom + 18, _tick_text(tick), "tick middle")
    return body + _text((scale.start + scale.end) / 2, bottom + 34, name, "name middle")


def _y_axis(scale: _Scale, left: float, right: float, name: str) -> Markup:
    body = Markup("")
    for tick in _ticks(scale.low, scale.high):
        body += _line(left, scale(tick), right, scale(tick), "axis" if tick == 0 else "grid")
        body += _text(left - 6, scale(tick) + 4, _tick_text(tick), "tick end")
    return body + _text(4, 11, name, "name")


def forest(rows: Sequence[ForestRow], limit: float, label: str, axis: str) -> Markup:
    """Differences with their intervals on a symmetric axis around a zero line, one row a perturbation.

    Args:
        rows: from top to bottom.
        limit: the axis runs from ``-limit`` to ``limit``.
        label: what a screen reader says.
        axis: name of the axis.
    """
    left, top, gap = 126, 8, 13
    scale = _Scale(-limit, limit, left, WIDTH - 14)
    body, y = Markup(""), float(top)
    for row in rows:
        slots = sorted([*row.undefined, *(dot.series for dot in row.dots)])
        height = gap * max(len(slots), 1) + 12
        body += _text(left - 10, y + height / 2 + 4, row.label, "label end")
        middle = y + height / 2 - (len(slots) - 1) / 2 * gap
        for series in row.undefined:
            at = middle + slots.index(series) * gap + 4
            body += _coloured(series, _text(scale(0) + 6, at, "not defined", "gap"))
        for dot in row.dots:
            at = middle + slots.index(dot.series) * gap
            body += _group(
                dot.number_id,
                series_class(dot.series),
                _line(scale(dot.low), at, scale(dot.high), at, "interval")
                + marker(scale(dot.value), at, dot.series, hollow=dot.zero),
            )
        y += height
    axes = _x_axis(scale, top, y, axis)
    return _svg(
        y + 42,
        label,
        "Dots are differences, bars their intervals. The table holds the same numbers.",
        axes + body,
    )


def curve(
    lines: Sequence[Sequence[tuple[float, Dot]]],
    limit: float,
    label: str,
    x_name: str,
    y_name: str,
    gaps: Sequence[tuple[float, int]] = (),
) -> Markup:
    """Rates along a quantity, one line a series; each point is (x, dot).

    Args:
        lines: points of each line, by rising x.
        limit: end of the y axis, which starts at 0.
        label: what a screen reader says.
        x_name: name of the x axis.
        y_name: name of the y axis.
        gaps: (x, series) where a rate is not defined.
    """
    left, top, bottom = 44, 24, 176
    xs = sorted({x for line in lines for x, _ in line} | {x for x, _ in gaps})
    x_scale = _Scale(xs[0], xs[-1] if xs[-1] > xs[0] else xs[0] + 1, left + 22, WIDTH - 26)
    y_scale = _Scale(0.0, limit, bottom, top)
    body = _y_axis(y_scale, left, WIDTH - 8, y_name)
    for x in xs:
        body += _text(x_scale(x), bottom + 18, _tick_text(x), "tick middle")
    for place, (x, series) in enumerate(gaps):
        above = sum(other == x for other, _ in gaps[:place])
        body += _coloured(series, _text(x_scale(x), top + 12 * (above + 1), "not defined", "gap middle"))
    body += _text((left + WIDTH) / 2, bottom + 34, x_name, "name middle")
    for index, line in enumerate(lines):
        # lines side by side, so that intervals of several models do not cover each other
        shift = (index - (len(lines) - 1) / 2) * 6
        places = [(x_scale(x) + shift, dot) for x, dot in line]
        points = " ".join(f"{_n(x)},{_n(y_scale(dot.value))}" for x, dot in places)
        if line:
            body += Markup('<polyline class="line {}" points="{}"/>').format(series_class(line[0][1].series), points)
        for x, dot in places:
            body += _group(
                dot.number_id,
                series_class(dot.series),
                _line(x, y_scale(dot.low), x, y_scale(dot.high), "interval")
                + marker(x, y_scale(dot.value), dot.series, hollow=dot.zero),
            )
    return _svg(
        bottom + 42,
        label,
        "Dots are rates, bars their intervals. The headline table holds the numbers.",
        body,
    )


def scatter(points: Sequence[tuple[Dot, Dot, int]], limit: float, label: str, x_name: str, y_name: str) -> Markup:
    """One rate against another with both intervals; a point is (x, y, shape), its colour is that of ``y``.

    Args:
        points: the points.
        limit: end of the y axis; the x axis runs from 0 to 1.
        label: what a screen reader says.
        x_name: name of the x axis.
        y_name: name of the y axis.
    """
    left, top, bottom = 44, 24, 196
    x_scale = _Scale(0.0, 1.0, left, WIDTH - 14)
    y_scale = _Scale(0.0, limit, bottom, top)
    body = _x_axis(x_scale, top, bottom, x_name) + _y_axis(y_scale, left, WIDTH - 14, y_name)
    for x, y, shape in points:
        at_x, at_y = x_scale(x.value), y_scale(y.value)
        body += _group(
            x.number_id,
            series_class(y.series),
            _line(x_scale(x.low), at_y, x_scale(x.high), at_y, "interval thin"),
        )
        body += _group(
            y.number_id,
            series_class(y.series),
            _line(at_x, y_scale(y.low), at_x, y_scale(y.high), "interval thin")
            + marker(at_x, at_y, shape, hollow=y.zero, radius=5.5),
        )
    return _svg(bottom + 42, label, "Dots are pairs of rates, bars their intervals.", body)


def stacked(rows: Sequence[BarRow], label: str) -> Markup:
    """Bars from 0 to 1 cut into shares, one bar a cell, in blocks.

    Args:
        rows: from top to bottom; rows of one group stand together.
        label: what a screen reader says.
    """
    left, height, end = 152, 16, WIDTH - 8
    scale = _Scale(0.0, 1.0, left, end)
    body, y, group = Markup(""), 4.0, None
    for row in rows:
        if row.group != group:
            y += 6 if group is not None else 0
            body += _text(0, y + 12, row.group, "label")
            group = row.group
        body += _text(left - 6, y + 12, row.label, "tick end")
        start = 0.0
        if not row.segments:
            body += _text(left, y + 12, "no user turns", "tick")
        for segment in row.segments:
            if segment.share <= 0:
                continue
            x, width = scale(start), scale(start + segment.share) - scale(start)
            piece = Markup('<rect class="bar" x="{}" y="{}" width="{}" height="{}"/>').format(
                _n(x), _n(y), _n(width), height
            )
            if width >= 11:
                piece += _text(x + width / 2, y + 12, segment.letter, "letter")
            body += _group(segment.number_id, label_class(segment.series), piece)
            start += segment.share
        y += height + 2
    axis = Markup("").join(
        _text(scale(tick), y + 14, _tick_text(tick), "tick middle") for tick in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    return _svg(y + 20, label, "Each bar is one cell, cut into the shares of its labels.", body + axis)

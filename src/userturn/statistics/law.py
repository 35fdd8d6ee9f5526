"""The exact law of the item bootstrap of a ratio of two sums.

A resample of N items draws N of them independently, so the pair (sum of numerators, sum of denominators) has
the N-fold convolution of the items' pairs as its law: Efron's theoretical bootstrap, the limit of infinitely
many resamples. A Fourier transform gives it on the part of the lattice that holds all the mass but ``CUT``.
A mean is the ratio whose denominators are equal: the second axis has one point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from userturn.statistics.types import FloatArray, IntArray

ComplexArray = NDArray[np.complex128]

CUT = 2.5e-13
"""Most mass outside the window at either end of either sum. It wraps around into the window, which shifts a
probability by 1e-12 at most."""

SLACK = 1e-9
"""A quantile is the smallest ratio whose probability comes this close to the tail, so that rounding cannot
move a limit where the two are equal."""

LARGEST_WINDOW = 2**19
"""Most points of the window; resamples are drawn beyond it (4 MB an array, tens of milliseconds)."""

MOST_SORTED = 512
"""Points of a bracket that are sorted instead of cutting it again, beside one for each denominator."""

SECTIONS = 16
"""Parts into which a bracket is cut at once."""

GUESS = np.array([-0.6, -0.2, -0.06, 0.06, 0.2, 0.6])
"""First cuts around the normal law's quantile, in standard errors."""


@dataclass(frozen=True)
class Axis:
    """The window of one resampled sum: ``first + step * i`` for i < size.

    Attributes:
        first: smallest sum of the window.
        step: greatest common divisor of the differences of the items' values, 1 if all are equal.
        size: number of sums.
        places: shape (n_items,), each item's value in steps above the smallest value.
        skipped: steps from the smallest possible sum to ``first``.
    """

    first: int
    step: int
    size: int
    places: IntArray
    skipped: int

    @classmethod
    def of(cls, values: IntArray) -> Axis:
        """The window of the sum of ``values``.

        Chernoff's bound, P(S >= x) <= exp(N K(t) - t x), holds for every t: the limits are the tightest over
        a few multiples of the t that is best for a normal law.

        Args:
            values: whole numbers, shape (n_items,), at least one.

        Returns:
            A window outside of which lies at most ``CUT`` on either side.
        """
        n, least = values.size, int(values.min())
        above = values - least
        distinct, counts = np.unique(above, return_counts=True)
        if distinct.size == 1:
            return cls(n * least, 1, 1, above, 0)
        step = int(np.gcd.reduce(distinct))
        distinct, share = distinct // step, counts / n
        mean = float((share * distinct).sum())
        centred = distinct - mean
        log_cut = math.log(CUT)
        best = math.sqrt(-2.0 * log_cut / (n * float((share * centred**2).sum())))
        t = best * np.array([0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0])
        exponents = np.multiply.outer(np.array([-t, t]), centred)
        reach = ((n * np.log((np.exp(exponents) * share).sum(axis=2)) - log_cut) / t).min(axis=1)
        first = max(0, math.floor(n * mean - reach[0]))
        last = min(n * int(distinct[-1]), math.ceil(n * mean + reach[1]))
        return cls(n * least + step * first, step, last - first + 1, above // step, first)

    def points(self) -> IntArray:
        """The sums of the window, ascending, shape (size,)."""
        return self.first + self.step * np.arange(self.size, dtype=np.int64)


def _roots(size: int) -> ComplexArray:
    """``exp(2 pi i k / size)`` for k < size."""
    return np.asarray(np.exp(2j * np.pi / size * np.arange(size)), dtype=np.complex128)


def _power(base: ComplexArray, exponent: int) -> ComplexArray:
    """``base ** exponent`` by squaring, several times as fast as numpy's power of complex numbers."""
    found = np.ones_like(base)
    while exponent:
        if exponent & 1:
            found *= base
        base, exponent = base * base, exponent >> 1
    return found


def _spectrum(a: Axis, b: Axis, height: int, width: int) -> ComplexArray:
    """Transform of the law of the pair, its origin at the first point of the window.

    All but a few frequencies vanish in the N-th power: below 1e-18 they add nothing to a probability. They are
    found in single precision, and only the others are computed.

    Returns:
        Shape (height, n), n <= width // 2 + 1: the frequencies of ``a`` up to the last one that matters.
    """
    n = a.places.size
    at = b.places % height
    rows = np.flatnonzero(np.bincount(at))
    mass = np.zeros((rows.size, width))
    np.add.at(mass, (np.searchsorted(rows, at), a.places % width), 1.0)
    lines = fft.rfft(mass / n)
    rough = np.zeros((height, lines.shape[1]), dtype=np.complex64)
    rough[rows] = lines
    rough = fft.fft(rough, axis=0, overwrite_x=True)
    down, along = np.divmod(np.flatnonzero(rough.real**2 + rough.imag**2 > 10.0 ** (-38.0 / n)), lines.shape[1])
    turns = _roots(height)
    one = np.zeros(down.size, dtype=np.complex128)
    for place, line in zip(rows.tolist(), lines, strict=True):
        one += turns[-place * down % height] * line[along]
    turned = turns[b.skipped % height * down % height] * _roots(width)[a.skipped % width * along % width]
    spectrum = np.zeros((height, int(along.max()) + 1), dtype=np.complex128)
    spectrum[down, along] = _power(one, n) * turned
    return spectrum


def _normal_quantile(
    probability: float, x: float, y: float, var_x: float, var_y: float, covariance: float
) -> tuple[float, float]:
    """The quantile of x / y for normal x and y (Fieller), and its standard error; a starting point only."""
    z = NormalDist().inv_cdf(probability)
    q, p, s = y * y - z * z * var_y, x * y - z * z * covariance, x * x - z * z * var_x
    r = x / y
    if q > 0.0:
        r = (p + math.copysign(math.sqrt(max(0.0, p * p - q * s)), z)) / q
    return r, math.sqrt(max(0.0, var_x - 2.0 * r * covariance + r * r * var_y)) / y


@dataclass(frozen=True)
class RatioLaw:
    """The law of a resampled ratio on the window.

    The law summed along the numerators has the law's transform divided by 1 - exp(-i angle), but for a slope
    that stands for the angle 0. The probability of denominator ``d`` and one of the first ``j`` numerators is
    ``waves[d, j - 1] - waves[d, -1] + j * slopes[d]``.

    Attributes:
        numerator: window of the numerator.
        denominators: sums of the window that are not 0, ascending, shape (n_d,).
        waves: shape (n_d, width), periodic, at least as wide as the window of the numerator.
        slopes: shape (n_d,).
        defined: probability that the denominator is not 0.
        moments: means of the two resampled sums, their variances and covariance, as in :func:`_normal_quantile`.
    """

    numerator: Axis
    denominators: IntArray
    waves: FloatArray
    slopes: FloatArray
    defined: float
    moments: tuple[float, float, float, float, float]

    @classmethod
    def of(cls, numerators: IntArray, denominators: IntArray) -> RatioLaw | None:
        """The law of ``sum(numerators[d]) / sum(denominators[d])`` for items ``d`` drawn with replacement.

        Args:
            numerators: whole numbers, shape (n_items,), at least one.
            denominators: whole numbers >= 0, not all 0, shape (n_items,).

        Returns:
            The law; None where its window has more than ``LARGEST_WINDOW`` points.
        """
        a, b = Axis.of(numerators), Axis.of(denominators)
        if a.size * b.size > LARGEST_WINDOW:
            return None
        height, width = fft.next_fast_len(b.size), fft.next_fast_len(a.size, real=True)
        lines = fft.ifft(_spectrum(a, b, height, width), axis=0)[int(b.first == 0) : b.size]
        shares = lines[:, 0].real.copy()
        lines[:, 0] = 0.0
        lines[:, 1:] *= 1.0 / (1.0 - _roots(width)[1 : lines.shape[1]].conj())
        waves = fft.irfft(lines, n=width)
        x, y = float(numerators.sum()), float(denominators.sum())
        dx, dy = numerators - x / numerators.size, denominators - y / denominators.size
        moments = (x, y, float((dx * dx).sum()), float((dy * dy).sum()), float((dx * dy).sum()))
        return cls(a, b.points()[-lines.shape[0] :], waves, shares / width, float(shares.sum()), moments)

    def _within(self, ratios: FloatArray) -> tuple[IntArray, FloatArray]:
        """How many numerators of each denominator are within each ratio, (n_ratios, n_d), and their probability."""
        a = self.numerator
        steps = (np.multiply.outer(ratios, self.denominators) - (a.first - a.step)) / a.step
        counts = np.clip(steps, 0.0, a.size).astype(np.int64)
        summed = self.waves[np.arange(self.denominators.size), counts - 1].sum(axis=1) - self.waves[:, -1].sum()
        return counts, summed + (counts * self.slopes).sum(axis=1)

    def quantile(self, probability: float) -> float:
        """The smallest ratio whose probability, given that it is defined, reaches ``probability``.

        A bracket of ratios is cut until the points of the lattice in it are few enough to be sorted: the
        answer is a point of the lattice. Equal ratios of different points are equal floats, since a quotient
        is rounded correctly.

        Args:
            probability: between 0 and 1.

        Returns:
            The quantile, as ``numpy.quantile(..., method="inverted_cdf")`` of infinitely many resamples.
        """
        target = self.defined * (probability - SLACK)
        sums = self.numerator.points()
        under = np.zeros(self.denominators.size, dtype=np.int64)
        over = np.full_like(under, sums.size)
        corners = np.divide.outer(sums[[0, -1]], self.denominators[[0, -1]])
        low, high, reached = float(corners.min()), float(corners.max()), 0.0
        guess, error = _normal_quantile(probability, *self.moments)
        cuts = guess + error * GUESS
        while True:
            counts, probabilities = self._within(cuts)
            place = int(np.searchsorted(probabilities, target))
            if place > 0:
                low, under, reached = float(cuts[place - 1]), counts[place - 1], float(probabilities[place - 1])
            if place < cuts.size:
                high, over = float(cuts[place]), counts[place]
            if int((over - under).sum()) <= MOST_SORTED + under.size:
                break
            cuts = np.linspace(low, high, SECTIONS + 1)[1:-1]
        some = over - under
        row = np.repeat(np.arange(under.size), some)
        column = np.arange(row.size) - np.repeat(np.cumsum(some) - over, some)
        ratio = sums[column] / self.denominators[row]
        order = np.argsort(ratio, kind="stable")
        mass = self.waves[row, column] - self.waves[row, column - 1] + self.slopes[row]
        place = int(np.searchsorted(reached + np.cumsum(mass[order]), target))
        return float(ratio[order[min(place, row.size - 1)]])

    def sample(self, uniform: FloatArray) -> FloatArray:
        """Draws from the law by its inverse.

        Args:
            uniform: numbers from [0, 1), any shape.

        Returns:
            Ratios, of the same shape; NaN where the denominator is 0.
        """
        mass = np.diff(self.waves, axis=1, prepend=self.waves[:, -1:])[:, : self.numerator.size]
        mass += self.slopes[:, None]
        # what the transform leaves at points that no resample reaches is no mass
        mass[mass < CUT] = 0.0
        reached = np.cumsum(mass)
        place = np.searchsorted(reached, uniform * (reached[-1] / self.defined), side="right")
        column = self.numerator.points()[place % self.numerator.size]
        row = np.minimum(place // self.numerator.size, self.denominators.size - 1)
        return np.where(place < reached.size, column / self.denominators[row], np.nan)

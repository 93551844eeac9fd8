"""Tick marks of axes: round numbers, powers of ten on logarithmic axes, whole numbers for whole numbers."""
import math

import numpy as np

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MOST_TICKS = 7


def number_text(value):
    """Returns a short text: 0.05, 1500, 2×10⁻⁴, 10⁶."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:.6g}"
    mantissa, exponent = f"{value:.5e}".split("e")
    power = "10" + str(int(exponent)).translate(SUPERSCRIPTS)
    factor = f"{float(mantissa):g}"
    return {"1": power, "-1": "−" + power}.get(factor, f"{factor}×{power}")


def round_numbers(low, high, whole=False, most=MOST_TICKS):
    """Returns the multiples of 1, 2 or 5 times a power of ten in [low, high]."""
    if not high > low:
        return [low]
    step = 10.0 ** math.floor(math.log10((high - low) / most))
    step *= next(factor for factor in (1, 2, 5, 10, 20) if (high - low) / (factor * step) <= most)
    step = max(1, round(step)) if whole else step
    return [float(f"{number * step:.12g}") for number in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def powers_of_ten(low, high, most=MOST_TICKS, factors=(1,)):
    """Returns the powers of ten in [low, high], times `factors`; with 2 and 5 times these if there are fewer than
    three."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = math.ceil((last - first + 1) / most)

    def inside(factors):
        marks = (float(f"{factor}e{exponent}") for exponent in range(first, last + 1) if exponent % every == 0 for factor in factors)
        return [mark for mark in marks if low * (1 - 1e-9) <= mark <= high * (1 + 1e-9)]
    marks = inside(factors)
    marks = marks if len(marks) > 2 or every > 1 else inside((1, 2, 5))
    return marks if len(marks) > 1 else round_numbers(low, high)


def is_logarithmic(values):
    """True if all values are positive and the largest is more than 20 times the smallest."""
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    return bool(len(values) and values.min() > 0 and values.max() > 20 * values.min())


def value_axis(values):
    """Returns plotly's settings for an axis of `values`: its type, and ticks if it is logarithmic."""
    if not is_logarithmic(values):
        return {"type": "linear"}
    values = np.asarray(values, float)
    margin = 1.5  # plotly draws the axis beyond the values
    marks = powers_of_ten(np.nanmin(values) / margin, np.nanmax(values) * margin)
    return {"type": "log", "tickvals": marks, "ticktext": [number_text(mark) for mark in marks]}


def gene_axis(gene, values):
    """Returns plotly's settings for the axis of a gene. `values` are numbers of analysis.coordinates()."""
    if gene.kind == "choice":
        return {"tickvals": list(range(len(gene.options))), "ticktext": [str(option) for option in gene.options]}
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if gene.is_log:
        marks = powers_of_ten(10.0 ** low, 10.0 ** high) if high > low else [10.0 ** low]
        marks = sorted({max(1, round(mark)) for mark in marks}) if gene.kind == "int" else marks
        return {"tickvals": [math.log10(mark) for mark in marks], "ticktext": [number_text(mark) for mark in marks]}
    marks = round_numbers(low, high, whole=gene.kind == "int")
    return {"tickvals": marks, "ticktext": [number_text(mark) for mark in marks]}


def ranked_ticks(values, most=MOST_TICKS):
    """Returns ticks for an axis of ranks in [0, 1]: round numbers, at the share of `values` that are smaller."""
    values = np.sort(np.asarray(values, float))
    if values[-1] == values[0]:
        return [0.5], [number_text(float(f"{values[0]:.4g}"))]
    low, high = float(values[0]), float(values[-1])
    coarse = powers_of_ten(low, high, 1000, (1, 2, 5)) if is_logarithmic(values) else []
    marks = {}  # {place: value}; rounder values come first
    for value in (*coarse, *(value for count in (8, 20, 50, 100) for value in round_numbers(low, high, most=count))):
        place = float(np.searchsorted(values, value) / len(values))
        if all(abs(place - other) >= 1 / most for other in marks):
            marks[place] = value
    return sorted(marks), [number_text(marks[place]) for place in sorted(marks)]

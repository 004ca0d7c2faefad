"""Prints the reference values of lab/stats as JSON.

    python3 -m venv venv && venv/bin/pip install scipy
    venv/bin/python reference.py > reference.json

The output names the SciPy and NumPy that made it.
"""

import json
from collections import Counter

import numpy as np
import scipy
from scipy import stats

rng = np.random.default_rng(20150401)


def pairs(n, digits, shift=0.03, spread=0.05):
    """n pairs of positive values."""
    base = np.exp(spread * rng.standard_normal(n))
    subject = base * np.exp(shift + spread * rng.standard_normal(n))
    base, subject = np.round(base, digits), np.round(subject, digits)
    return subject.tolist(), base.tolist()


def signed_rank(subject, baseline):
    """Hodges and Lehmann's ratio, the exact test of SciPy, and the bounds at
    which that test, of shifted pairs, turns from p > 0.05 to p <= 0.05."""
    d = np.log(np.array(subject) / np.array(baseline))
    method = "exact" if len(d) <= 50 else "asymptotic"

    def p(shift):
        return stats.wilcoxon(d - shift, method=method, correction=method != "exact").pvalue

    def bound(outside, inside):
        for _ in range(200):
            middle = (outside + inside) / 2
            if p(middle) > 0.05:
                inside = middle
            else:
                outside = middle
        return inside

    averages = [(d[i] + d[j]) / 2 for i in range(len(d)) for j in range(i + 1)]
    centre, far = np.median(averages), 1 + np.ptp(d)
    ranks = stats.rankdata(np.abs(d))
    return dict(subject=subject, baseline=baseline, ratio=float(np.exp(centre)), p=float(p(0)),
                low=float(np.exp(bound(centre - far, centre))), high=float(np.exp(bound(centre + far, centre))),
                effect=float((ranks[d > 0].sum() - ranks[d < 0].sum()) / ranks.sum()))


def signed_rank_cases():
    return [signed_rank(*pairs(n, 12, shift))
            for n in (6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 50, 51, 60) for shift in (0.0, 0.03)]


def runs_cases():
    out = []
    for n, m in ((2, 2), (3, 3), (2, 5), (4, 3), (6, 6), (10, 4)):
        a, b = (0.03 + 0.05 * rng.standard_normal(n)).tolist(), (0.05 * rng.standard_normal(m)).tolist()
        t = stats.ttest_ind(a, b)
        interval = t.confidence_interval(0.95)
        out.append(dict(subject=a, baseline=b, p=float(t.pvalue), low=float(interval.low), high=float(interval.high)))
    return out


def slope_cases():
    out = []
    for n, digits in ((3, 12), (8, 12), (30, 12), (30, 1), (61, 12), (100, 2)):
        x = np.round(np.cumsum(0.1 + 0.02 * rng.random(n)), 6)
        y = np.round(5 + 0.4 * x + rng.standard_normal(n), digits)
        out.append(dict(x=x.tolist(), y=y.tolist(), slope=float(stats.theilslopes(y, x).slope)))
    return out


def mann_kendall(y):
    n = len(y)
    if n <= 60 and len(set(y)) == n:
        return float(stats.kendalltau(np.arange(n), y, method="exact").pvalue)
    score = sum(np.sign(y[j] - y[i]) for i in range(n) for j in range(i + 1, n))
    ties = sum(t * (t - 1) * (2 * t + 5) for t in Counter(y).values())
    variance = (n * (n - 1) * (2 * n + 5) - ties) / 18
    return float(2 * stats.norm.sf(max(0, abs(score) - 1) / np.sqrt(variance)))


def trend_cases():
    out = []
    for n in (2, 3, 4, 5, 8, 10, 20, 30, 60, 61, 100):
        for slope in (0.0, 0.05):
            y = (slope * np.arange(n) + rng.standard_normal(n)).tolist()
            out.append(dict(y=y, p=mann_kendall(y)))
    for n in (5, 10, 30, 80):
        y = np.round(0.03 * np.arange(n) + rng.standard_normal(n), 0).tolist()
        out.append(dict(y=y, p=mann_kendall(y)))
    return out


def holm(ps):
    out, highest = [0.0] * len(ps), 0.0
    for done, i in enumerate(np.argsort(ps, kind="stable")):
        highest = min(1.0, max(highest, ps[i] * (len(ps) - done)))
        out[i] = highest
    return out


def holm_cases():
    given = [[0.01, 0.04, 0.03, 0.005], [0.5], [], [0.2, 0.2, 0.2], [1, 0, 0.9]]
    given += [np.round(rng.random(k) ** 3, 4).tolist() for k in (5, 12, 40)]
    return [dict(p=ps, adjusted=holm(ps)) for ps in given]


def power_cases():
    """Noncentral t: the chance of t beyond the critical value of level."""
    out = []
    for freedom in (3, 5, 7, 9, 19, 38, 58):
        for level in (0.01, 0.05):
            for shift in (0.5, 2.0, 3.5, 6.0):
                t = stats.t.ppf(1 - level / 2, freedom)
                out.append(dict(freedom=freedom, level=level, shift=shift, power=float(stats.nct.sf(t, freedom, shift))))
    return out


print(json.dumps(dict(
    made_by=f"SciPy {scipy.__version__}, NumPy {np.__version__}",
    signed_rank=signed_rank_cases(),
    runs=runs_cases(),
    slope=slope_cases(),
    trend=trend_cases(),
    holm=holm_cases(),
    power=power_cases(),
), indent=None, separators=(",", ":")).replace('{"', '\n{"'))

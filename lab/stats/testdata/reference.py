"""Prints the reference values of lab/stats as JSON.

    python3 -m venv venv && venv/bin/pip install scipy
    venv/bin/python reference.py > reference.json

The output names the SciPy and NumPy that made it. What SciPy has no exact
method for (ties among many values) is counted out here in whole numbers.
"""

import json
from collections import Counter
from fractions import Fraction

import numpy as np
import scipy
from scipy import stats

rng = np.random.default_rng(20150401)


def pairs(n, digits, shift=0.03, spread=0.05, zero=0):
    """n pairs of positive values; few digits make ties, zero pairs are equal."""
    base = np.exp(spread * rng.standard_normal(n))
    subject = base * np.exp(shift + spread * rng.standard_normal(n))
    base, subject = np.round(base, digits), np.round(subject, digits)
    subject[:zero] = base[:zero]
    return subject.tolist(), base.tolist()


def contrasts(subject, baseline):
    """Signed sizes that order pairs as the logarithms of their ratios do."""
    if min(subject + baseline) > 0:
        return [(max(s, b) / min(s, b) - 1) * (1 if s > b else -1) if s != b else 0.0
                for s, b in zip(subject, baseline)]
    return [s - b for s, b in zip(subject, baseline)]


def two_sided(ways, seen):
    total = sum(ways.values())
    low = sum(w for k, w in ways.items() if k <= seen)
    high = sum(w for k, w in ways.items() if k >= seen)
    return float(min(Fraction(1), Fraction(2 * min(low, high), total)))


def signed_rank_exact(d):
    d = [x for x in d if x]
    ranks = [round(2 * r) for r in stats.rankdata(np.abs(d))]
    ways = Counter({0: 1})
    for r in ranks:
        more = Counter(ways)
        for k, w in ways.items():
            more[k + r] += w
        ways = more
    return two_sided(ways, sum(r for r, x in zip(ranks, d) if x > 0))


def rank_sum_exact(a, b):
    ranks = [round(2 * r) for r in stats.rankdata(a + b)]
    table = [Counter() for _ in range(len(a) + 1)]
    table[0][0] = 1
    for r in ranks:
        for k in range(len(a), 0, -1):
            for s, w in list(table[k - 1].items()):
                table[k][s + r] += w
    return two_sided(table[len(a)], sum(ranks[:len(a)]))


def biserial(d):
    d = np.array([x for x in d if x])
    r = stats.rankdata(np.abs(d))
    return float((r[d > 0].sum() - r[d < 0].sum()) / r.sum())


def wilcoxon(name, subject, baseline):
    d = contrasts(subject, baseline)
    kept = [x for x in d if x]
    plain = len({abs(x) for x in kept}) == len(kept)
    if len(kept) > 50:
        method, p = "scipy approx", stats.wilcoxon(d, method="approx").pvalue
    elif plain and len(kept) == len(d):
        method, p = "scipy exact", stats.wilcoxon(d, method="exact").pvalue
    elif len(d) <= 13:
        method, p = "scipy permutation", stats.wilcoxon(d, method=stats.PermutationMethod()).pvalue
        assert abs(p - signed_rank_exact(d)) < 1e-12, (name, p, signed_rank_exact(d))
    else:
        method, p = "counted", signed_rank_exact(d)
    return dict(name=name, method=method, subject=subject, baseline=baseline, p=float(p), effect=biserial(d))


def wilcoxon_cases():
    out = []
    for n in (3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 50, 51, 60):
        for shift in (0.0, 0.03):
            out.append(wilcoxon(f"{n} pairs, shift {shift}", *pairs(n, 12, shift)))
    for n in (4, 6, 8, 10, 13, 20, 35, 50, 60):
        out.append(wilcoxon(f"{n} pairs with ties", *pairs(n, 1, 0.05, 0.2)))
    for n, zero in ((5, 1), (8, 2), (10, 3), (13, 1), (20, 4), (50, 5), (58, 6), (60, 7)):
        out.append(wilcoxon(f"{n} pairs, {zero} equal", *pairs(n, 12, zero=zero)))
    for n in (10, 20):
        out.append(wilcoxon(f"{n} pairs with ties and equals", *pairs(n, 1, 0.1, 0.2, 2)))
    for n in (6, 12, 18):
        subject, baseline = pairs(n, 2, 0.1, 0.3)
        baseline[n // 2] = 0.0
        out.append(wilcoxon(f"{n} pairs with a zero, so by differences", subject, baseline))
    return out


def mann_whitney(name, a, b):
    plain = len(set(a + b)) == len(a + b)
    if min(len(a), len(b)) * (len(a) + len(b)) > 2000:
        method, p = "scipy asymptotic", stats.mannwhitneyu(a, b, method="asymptotic").pvalue
    elif plain:
        method, p = "scipy exact", stats.mannwhitneyu(a, b, method="exact").pvalue
        assert abs(p - rank_sum_exact(a, b)) < 1e-12, name
    else:
        method, p = "counted", rank_sum_exact(a, b)
    delta = float(np.mean(np.sign(np.subtract.outer(a, b))))
    return dict(name=name, method=method, subject=a, baseline=b, p=float(p), effect=delta)


def mann_whitney_cases():
    def side(n, digits, shift):
        return np.round(np.exp(shift + 0.05 * rng.standard_normal(n)), digits).tolist()
    out = []
    for n, m in ((1, 1), (1, 5), (3, 3), (3, 4), (5, 5), (6, 8), (8, 6), (10, 10), (4, 20), (20, 20), (25, 25), (3, 100), (30, 36)):
        for shift in (0.0, 0.05):
            out.append(mann_whitney(f"{n} and {m}, shift {shift}", side(n, 12, shift), side(m, 12, 0)))
    for n, m in ((3, 5), (6, 6), (8, 10), (12, 5), (20, 20)):
        out.append(mann_whitney(f"{n} and {m} with ties", side(n, 2, 0.04), side(m, 2, 0)))
    for n, m in ((32, 32), (40, 45), (60, 35)):
        for digits in (2, 12):
            out.append(mann_whitney(f"{n} and {m}, {digits} digits", side(n, digits, 0.02), side(m, digits, 0)))
    return out


def bootstrap_cases():
    """Bounds that SciPy draws; the exact ones differ by the luck of the draw."""
    def ratio(s, b, axis=-1):
        return np.median(s, axis=axis) / np.median(b, axis=axis)

    def middle_ratio(s, b, axis=-1):
        return np.exp(np.median(np.log(s / b), axis=axis))

    out = []
    for n in (6, 7, 8, 10, 15, 20, 41):
        subject, baseline = pairs(n, 12)
        k = n / (n - 1)
        tail = stats.norm.cdf(-np.sqrt(k) * stats.t.ppf(0.975, n - 1))
        interval = stats.bootstrap((np.array(subject), np.array(baseline)), middle_ratio, paired=True,
                                   n_resamples=400_000, batch=20_000, confidence_level=1 - 2 * tail,
                                   method="percentile", rng=np.random.default_rng(n)).confidence_interval
        out.append(dict(name=f"{n} pairs", paired=True, subject=subject, baseline=baseline,
                        ratio=float(ratio(subject, baseline)), low=float(interval.low), high=float(interval.high)))
    for n, m in ((6, 6), (9, 14), (20, 20)):
        subject, baseline = pairs(n, 12)[0], pairs(m, 12)[1]
        a, b = 1 / n, 1 / m
        df = (a + b) ** 2 / (a * a / (n - 1) + b * b / (m - 1))
        tail = stats.norm.cdf(-np.sqrt((df + 1) / df) * stats.t.ppf(0.975, df))
        interval = stats.bootstrap((np.array(subject), np.array(baseline)), ratio, paired=False,
                                   n_resamples=400_000, batch=20_000, confidence_level=1 - 2 * tail,
                                   method="percentile", rng=np.random.default_rng(n)).confidence_interval
        out.append(dict(name=f"{n} and {m}", paired=False, subject=subject, baseline=baseline,
                        ratio=float(ratio(subject, baseline)), low=float(interval.low), high=float(interval.high)))
    return out


def median_of_resamples(n):
    """The share of all nⁿ resamples of 1, 2, 4, 8 … that has each sum of the
    two middle values (n even) or twice the middle one (n odd)."""
    import itertools
    ways = Counter()
    for draw in itertools.product([2 ** i for i in range(n)], repeat=n):
        d = sorted(draw)
        ways[d[(n - 1) // 2] + d[n // 2]] += 1
    return dict(n=n, shares=[[k / 2, w / n ** n] for k, w in sorted(ways.items())])


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
    wilcoxon=wilcoxon_cases(),
    mann_whitney=mann_whitney_cases(),
    bootstrap=bootstrap_cases(),
    resamples=[median_of_resamples(n) for n in (1, 2, 3, 4, 5, 6)],
    slope=slope_cases(),
    trend=trend_cases(),
    holm=holm_cases(),
    power=power_cases(),
), indent=None, separators=(",", ":")).replace('{"', '\n{"'))

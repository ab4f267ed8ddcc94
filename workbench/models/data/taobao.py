"""Two formats of Taobao click logs: advertisements shown to users, and sequences of behavior.

The first is what DSSM reads, 19 columns separated by commas; the lists of tags may be empty. The
second is what DIN and DIEN read, separated by tabs: an item, and the items and categories that the
user went through before, oldest first; DIEN's has as many that the user passed over.

The generators take numbers of users, items and categories from the published logs, ids that follow
power laws, profiles that are the user's own in every row, and a label that can be learned. A
quarter of the rows and more are clicks, so that a short run learns; of real advertisements 5 % are.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from workbench.models.data.containers import check_file
from workbench.models.data.synthetic import clicks, lean, mixed, power_law, unit, write_rows
from workbench.models.data.table_format import CheckedTable, Column, TableFormat

DSSM_TAGS = ("tag_category_list", "tag_brand_list")
DSSM_USER = (
    "user_id", "cms_segid", "cms_group_id", "age_level", "pvalue_level", "shopping_level",
    "occupation", "new_user_class_level", *DSSM_TAGS,
)  # fmt: skip
DSSM_ITEM = ("adgroup_id", "cate_id", "campaign_id", "customer", "brand", "price", "pid")
DSSM_TABLE = TableFormat(
    summary="clk, buy, user_id to tag_brand_list, adgroup_id to pid",
    separator=b",",
    columns=(
        Column(name="clk", kind="label"),
        Column(name="buy", kind="label"),
        *(
            Column(name=name, kind="list", joined_by=b"|")
            if name in DSSM_TAGS
            else Column(name=name, kind="category")
            for name in (*DSSM_USER, *DSSM_ITEM)
        ),
    ),
)

LONGEST_HISTORY = 50


def _history(name: str, as_long_as: str | None = "HISTORY_ITEM") -> Column:
    return Column(
        name=name,
        kind="list",
        joined_by=b"\x02",
        least=1,
        most=LONGEST_HISTORY,
        as_long_as=as_long_as,
    )


SEQUENCE_TABLE = TableFormat(
    summary="CLICKED, UID, ITEM, CATEGORY, HISTORY_ITEM, HISTORY_CATEGORY",
    separator=b"\t",
    columns=(
        Column(name="CLICKED", kind="label"),
        *(Column(name=name, kind="category") for name in ("UID", "ITEM", "CATEGORY")),
        _history("HISTORY_ITEM", as_long_as=None),
        _history("HISTORY_CATEGORY"),
    ),
)
SEQUENCE_NEGATIVE_TABLE = TableFormat(
    summary=f"{SEQUENCE_TABLE.summary}, NOCLK_HISTORY_ITEM, NOCLK_HISTORY_CATEGORY",
    separator=b"\t",
    columns=(
        *SEQUENCE_TABLE.columns,
        _history("NOCLK_HISTORY_ITEM"),
        _history("NOCLK_HISTORY_CATEGORY"),
    ),
)

_GENERATOR_VERSION = 1
_USERS, _ADS = 1_141_729, 846_811
# What a user's profile and an advertisement's description are drawn from: distinct values, and the
# share of users or advertisements of which the value is not known.
_PROFILE = {
    "cms_segid": (97, 0.0), "cms_group_id": (13, 0.0), "age_level": (7, 0.0),
    "pvalue_level": (3, 0.54), "shopping_level": (3, 0.0), "occupation": (2, 0.0),
    "new_user_class_level": (4, 0.28),
}  # fmt: skip
_DESCRIPTION = {
    "cate_id": (6_769, 0.0), "campaign_id": (423_436, 0.0), "customer": (255_875, 0.0),
    "brand": (99_815, 0.29), "price": (900, 0.0),
}  # fmt: skip
_TAGS = {"tag_category_list": _DESCRIPTION["cate_id"][0], "tag_brand_list": 99_815}
_MOST_TAGS = 5
_BUYS = 0.05
_PLACES = (b"430548_1007", b"430539_1007")
# Columns whose values say what a user likes and what an item offers, and how strongly.
_LIKES = {"cms_segid": 0.5, "cms_group_id": 1.0, "age_level": 1.0}
_OFFERS = {"cate_id": 1.0, "brand": 0.4, "price": 1.0}
_TASTES = 3

_SEQUENCE_USERS, _CATEGORIES, _ITEMS_OF_ONE = 987_994, 9_439, 440
_INTERESTS = 3
_CHANGES_INTEREST, _KEEPS_TO_IT = 0.12, 0.85
_FORGETS = 0.9


def check_dssm(path: str | os.PathLike[str], *, rows: int | None = None) -> CheckedTable:
    """Checks the first `rows` rows (all when None) of a log of advertisements, as `check_file`."""
    return check_file(path, DSSM_TABLE, rows=rows)


def check_sequences(
    path: str | os.PathLike[str], *, rows: int | None = None, negatives: bool = True
) -> CheckedTable:
    """Checks the first `rows` rows (all when None) of sequences, with the columns of items passed
    over or without; see `check_file`."""
    layout = SEQUENCE_NEGATIVE_TABLE if negatives else SEQUENCE_TABLE
    return check_file(path, layout, rows=rows)


def generate_dssm(path: str | os.PathLike[str], *, rows: int = 200_000, seed: int = 1) -> Path:
    """Writes a log of advertisements shown, as `generate_criteo` writes one of clicks."""
    recipe: dict[str, int | str] = {"format": "dssm", "generator": _GENERATOR_VERSION}
    return write_rows(path, _dssm_lines, recipe, rows=rows, seed=seed)


def generate_sequences(
    path: str | os.PathLike[str], *, rows: int = 200_000, seed: int = 1, negatives: bool = True
) -> Path:
    """Writes sequences of behavior, as `generate_criteo` writes clicks.

    Without negatives the two columns of items passed over are left off, and nothing else differs.
    """
    recipe: dict[str, int | str] = {
        "format": "sequences with negatives" if negatives else "sequences",
        "generator": _GENERATOR_VERSION,
    }
    lines = _negative_sequence_lines if negatives else _sequence_lines
    return write_rows(path, lines, recipe, rows=rows, seed=seed)


def _dssm_lines(seed: list[int], rows: int) -> list[bytes]:
    rng = np.random.default_rng(seed)
    users = power_law(rng.random(rows), _USERS)
    ads = power_law(rng.random(rows), _ADS)
    place = rng.integers(len(_PLACES), size=rows)
    profile = {name: _trait(users, name, *_PROFILE[name]) for name in _PROFILE}
    described = {name: _trait(ads, name, *_DESCRIPTION[name]) for name in _DESCRIPTION}
    match = (_tastes(profile, _LIKES) * _tastes(described, _OFFERS)).sum(axis=1)
    score = -1.6 + 2.4 * match + 1.2 * lean(mixed(described["cate_id"], 301)) + 0.5 * place
    clicked = clicks(rng, score)
    late = (rng.random(rows) < _BUYS).tolist()
    bought = [click if buys else b"0" for click, buys in zip(clicked, late, strict=True)]
    columns = {
        "user_id": _numbers(users),
        "adgroup_id": _numbers(ads),
        "pid": [_PLACES[i] for i in place.tolist()],
        **{name: _numbers(values) for name, values in {**profile, **described}.items()},
        "price": [b"%d.9" % (10 * level) for level in described["price"].tolist()],
        **{name: _tags(users, name) for name in DSSM_TAGS},
    }
    fields = [columns[name] for name in (*DSSM_USER, *DSSM_ITEM)]
    return [b",".join(row) for row in zip(clicked, bought, *fields, strict=True)]


def _trait(ids: np.ndarray, name: str, cardinality: int, unknown: float) -> np.ndarray:
    """The value that a column has for each id, by a power law; -1 where it is not known."""
    column = 11 + (*_PROFILE, *_DESCRIPTION).index(name)
    values = power_law(unit(mixed(ids, column)), cardinality)
    return np.where(unit(mixed(ids, 100 + column)) < unknown, -1, values)


def _tastes(traits: dict[str, np.ndarray], strengths: dict[str, float]) -> np.ndarray:
    """Where users and items stand in the few directions of taste, float64 [rows, tastes]."""
    found = np.zeros((len(next(iter(traits.values()))), _TASTES))
    for at, (name, strength) in enumerate(strengths.items()):
        known = traits[name] >= 0
        first = 200 + at if strengths is _LIKES else 250 + at
        for taste in range(_TASTES):
            leans = lean(mixed(traits[name], first + 10 * taste))
            found[:, taste] += strength * np.where(known, leans, 0.0)
    return found


def _tags(users: np.ndarray, name: str) -> list[bytes]:
    """Each user's own tags, none to five of them."""
    first = 400 + 10 * DSSM_TAGS.index(name)
    counts = np.floor(unit(mixed(users, first)) * (_MOST_TAGS + 1)).astype(np.int64)
    values = [
        power_law(unit(mixed(users, first + i)), _TAGS[name]) for i in range(1, 1 + _MOST_TAGS)
    ]
    return _joined(np.stack(values, axis=1), counts, b"|")


def _sequence_lines(seed: list[int], rows: int) -> list[bytes]:
    rng = np.random.default_rng(seed)
    users = power_law(rng.random(rows), _SEQUENCE_USERS)
    counts = _history_lengths(rng, rows)
    categories, now = _histories(rng, users)
    items = _items(rng, categories)
    shown = np.where(rng.random(rows) < 0.5, now, power_law(rng.random(rows), _CATEGORIES))
    score = -1.9 + 4.5 * _affinity(categories, counts, shown) + 1.2 * lean(mixed(shown, 501))
    columns = (
        clicks(rng, score),
        _numbers(users),
        _numbers(_items(rng, shown)),
        _numbers(shown),
        _joined(items, counts, b"\x02"),
        _joined(categories, counts, b"\x02"),
    )
    return [b"\t".join(row) for row in zip(*columns, strict=True)]


def _negative_sequence_lines(seed: list[int], rows: int) -> list[bytes]:
    # Drawn apart, so that all other columns are those of a file without.
    rng = np.random.default_rng([*seed, 1])
    lines = _sequence_lines(seed, rows)
    counts = np.array([line.rpartition(b"\t")[2].count(b"\x02") + 1 for line in lines])
    categories = power_law(rng.random((rows, LONGEST_HISTORY)), _CATEGORIES)
    passed = (
        _joined(_items(rng, categories), counts, b"\x02"),
        _joined(categories, counts, b"\x02"),
    )
    return [b"\t".join(row) for row in zip(lines, *passed, strict=True)]


def _history_lengths(rng: np.random.Generator, rows: int) -> np.ndarray:
    return np.minimum(np.exp(rng.normal(2.4, 0.9, rows)), LONGEST_HISTORY - 1).astype(np.int64) + 1


def _histories(rng: np.random.Generator, users: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Categories that users went through, newest first, [rows, 50], and what interests them now.

    A user has a few interests, keeps to one for a while, and sometimes looks at something else.
    """
    shape = (len(users), LONGEST_HISTORY)
    changes = rng.random(shape) < _CHANGES_INTEREST
    changes[:, 0] = False
    turn = rng.integers(_INTERESTS, size=(len(users), 1)) + np.cumsum(changes, axis=1)
    interests = np.stack(
        [power_law(unit(mixed(users, 510 + i)), _CATEGORIES) for i in range(_INTERESTS)], axis=1
    )
    followed = np.take_along_axis(interests, turn % _INTERESTS, axis=1)
    others = power_law(rng.random(shape), _CATEGORIES)
    return np.where(rng.random(shape) < _KEEPS_TO_IT, followed, others), followed[:, 0]


def _affinity(categories: np.ndarray, counts: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """The share of a history that is of the shown item's category; what is old counts less."""
    age = np.arange(categories.shape[1])
    weights = np.where(age < counts[:, None], _FORGETS**age, 0.0)
    return (weights * (categories == shown[:, None])).sum(axis=1) / weights.sum(axis=1)


def _items(rng: np.random.Generator, categories: np.ndarray) -> np.ndarray:
    """An item of each category: every item belongs to one."""
    return categories * _ITEMS_OF_ONE + power_law(rng.random(categories.shape), _ITEMS_OF_ONE)


def _numbers(values: np.ndarray) -> list[bytes]:
    """Values from 0 as text; an empty field where the value is negative."""
    distinct, which = np.unique(values, return_inverse=True)
    texts = np.array([b"%d" % value if value >= 0 else b"" for value in distinct.tolist()], object)
    found: list[bytes] = texts[which.reshape(-1)].tolist()
    return found


def _joined(values: np.ndarray, counts: np.ndarray, by: bytes) -> list[bytes]:
    """The first `counts` values of each row, the last of them first, joined."""
    mask = np.arange(values.shape[1]) < counts[:, None]
    texts = _numbers(values[:, ::-1][mask[:, ::-1]])
    ends = np.cumsum(counts).tolist()
    return [
        by.join(texts[end - count : end]) for end, count in zip(ends, counts.tolist(), strict=True)
    ]
